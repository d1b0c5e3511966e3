//! The data types of nft: their widths, the names of their values, and how a value is spelt in text and JSON.
//! [`TYPES`] is the one table; a header's field, a key of `meta` or `ct` and the `type` of a set refer to its rows.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

pub use crate::json::number;

use crate::json::Json;
use crate::symbols as s;

/// A data type.
#[derive(Debug)]
pub struct Type {
    /// As `type` of a set names it.
    pub name: &'static str,
    /// Width of a value in bits; 0 where the field says it.
    pub bits: u32,
    /// How values without a name are spelt.
    pub kind: Kind,
    /// Names of values; of several names for a value the first is printed.
    pub symbols: s::Symbols,
}

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// How values of a type are spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Decimal.
    Decimal,
    /// Hexadecimal, as wide as the value.
    Hex,
    /// Hexadecimal without leading zeros; JSON has a number.
    Raw,
    /// Names, else hexadecimal.
    Named,
    /// Names that are read, but numbers that are written.
    Code,
    /// Bits with names.
    Bits,
    /// A quoted string.
    Text,
    /// The name of a named object, a quoted string.
    Object,
    /// `1.2.3.4`
    Ipv4,
    /// `::1`
    Ipv6,
    /// `00:11:22:33:44:55`
    Ether,
    /// A span of time in milliseconds, as `1m30s`.
    Time,
    /// `1:bbf8`
    Classid,
    /// `exists`, `missing`
    Boolean,
    /// A verdict.
    Verdict,
}

/// A reference to a row of [`TYPES`].
pub type Ty = &'static Type;

macro_rules! types {
    ($($id:ident = $name:literal, $bits:literal, $kind:ident, $symbols:expr;)*) => {
        $(
            #[doc = concat!("The type `", $name, "`.")]
            pub static $id: Type = Type { name: $name, bits: $bits, kind: Kind::$kind, symbols: $symbols };
        )*
        /// Every type.
        pub static TYPES: &[Ty] = &[$(&$id),*];
    };
}

types! {
    INTEGER = "integer", 0, Decimal, s::NONE;
    RAW = "xinteger", 0, Raw, s::NONE;
    STRING = "string", 0, Text, s::NONE;
    VERDICT = "verdict", 0, Verdict, s::NONE;
    NF_PROTO = "nf_proto", 8, Named, s::NF_PROTO;
    LL_ADDR = "ll_addr", 0, Ether, s::NONE;
    IPV4 = "ipv4_addr", 32, Ipv4, s::NONE;
    IPV6 = "ipv6_addr", 128, Ipv6, s::NONE;
    ETHER = "ether_addr", 48, Ether, s::NONE;
    ETHER_TYPE = "ether_type", 16, Named, s::ETHER_TYPE;
    ARP_OP = "arp_op", 16, Named, s::ARP_OP;
    PROTO = "inet_proto", 8, Decimal, s::PROTO;
    SERVICE = "inet_service", 16, Decimal, s::NONE;
    ICMP_TYPE = "icmp_type", 8, Decimal, s::ICMP_TYPE;
    ICMP_CODE = "icmp_code", 8, Code, s::ICMP_CODE;
    ICMPV6_TYPE = "icmpv6_type", 8, Decimal, s::ICMPV6_TYPE;
    ICMPV6_CODE = "icmpv6_code", 8, Code, s::ICMPV6_CODE;
    ICMPX_CODE = "icmpx_code", 8, Code, s::ICMPX_CODE;
    IGMP_TYPE = "igmp_type", 8, Decimal, s::IGMP_TYPE;
    TCP_FLAG = "tcp_flag", 8, Bits, s::TCP_FLAG;
    DCCP_TYPE = "dccp_pkttype", 4, Named, s::DCCP_TYPE;
    MH_TYPE = "mh_type", 8, Decimal, s::MH_TYPE;
    TIME = "time", 64, Time, s::NONE;
    MARK = "mark", 32, Hex, s::NONE;
    IFACE_INDEX = "iface_index", 32, Text, s::NONE;
    IFACE_TYPE = "iface_type", 16, Decimal, s::IFACE_TYPE;
    IFNAME = "ifname", 128, Text, s::NONE;
    REALM = "realm", 32, Text, s::NONE;
    CLASSID = "classid", 32, Classid, s::CLASSID;
    UID = "uid", 32, Decimal, s::NONE;
    GID = "gid", 32, Decimal, s::NONE;
    CT_STATE = "ct_state", 32, Bits, s::CT_STATE;
    CT_DIR = "ct_dir", 8, Decimal, s::CT_DIR;
    CT_STATUS = "ct_status", 32, Bits, s::CT_STATUS;
    CT_LABEL = "ct_label", 128, Decimal, s::NONE;
    CT_EVENT = "ct_event", 32, Bits, s::CT_EVENT;
    PKT_TYPE = "pkt_type", 8, Decimal, s::PKT_TYPE;
    DEVGROUP = "devgroup", 32, Decimal, s::DEVGROUP;
    DSCP = "dscp", 6, Named, s::DSCP;
    ECN = "ecn", 2, Named, s::ECN;
    FIB_ADDRTYPE = "fib_addrtype", 32, Decimal, s::FIB_ADDRTYPE;
    BOOLEAN = "boolean", 1, Boolean, s::BOOLEAN;
    CGROUPV2 = "cgroupsv2", 64, Text, s::NONE;
    IFKIND = "ifkind", 128, Text, s::NONE;
    DATE = "time_date", 64, Text, s::NONE;
    HOUR = "hour", 32, Text, s::NONE;
    DAY = "day", 8, Text, s::DAY;
    TCPOPT_SUBTYPE = "mptcp_subtype", 4, Decimal, s::MPTCP;
    GRE_FLAGS = "gre_flags", 5, Bits, s::GRE_FLAGS;
    QUEUE = "queue", 16, Decimal, s::NONE;
    COUNTER = "counter", 0, Object, s::NONE;
    QUOTA = "quota", 0, Object, s::NONE;
    LIMIT = "limit", 0, Object, s::NONE;
    CT_HELPER = "ct helper", 0, Object, s::NONE;
    CT_TIMEOUT = "ct timeout", 0, Object, s::NONE;
    CT_EXPECTATION = "ct expectation", 0, Object, s::NONE;
    SYNPROXY = "synproxy", 0, Object, s::NONE;
    SECMARK = "secmark", 32, Object, s::NONE;
    TUNNEL = "tunnel", 0, Object, s::NONE;
}

/// Days of the week with their numbers.
pub(crate) const DAY_NAMES: &[(&str, u32)] = s::DAY;

/// Finds a type by its name.
pub fn find(name: &str) -> Option<Ty> {
    TYPES.iter().find(|ty| ty.name == name).copied()
}

/// A constant with its type.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// What it is read as.
    pub ty: Ty,
    /// What it is.
    pub data: Data,
}

/// What a constant holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// A number, an address among them, its most significant byte the first on the wire.
    Number(u128),
    /// A number that is too long for that: its hexadecimal digits.
    Digits(Box<str>),
    /// Text; a trailing `*` stands for any rest, `\*` for the star itself.
    Text(Box<str>),
}

/// Reads a span of time, `1d2h3m4s5ms` or seconds, into milliseconds.
pub fn span(word: &str) -> Option<u128> {
    let mut rest = word;
    let mut sum: u128 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let count: u128 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, taken) = if rest.starts_with("ms") {
            (1, 2)
        } else {
            let unit = match rest.as_bytes().first() {
                Some(b'w') => 604_800_000,
                Some(b'd') => 86_400_000,
                Some(b'h') => 3_600_000,
                Some(b'm') => 60_000,
                Some(b's') => 1000,
                Some(_) => return None,
                None if digits == word.len() => 1000,
                None => return None,
            };
            (unit, usize::from(!rest.is_empty()))
        };
        rest = &rest[taken..];
        sum = sum.checked_add(count.checked_mul(unit)?)?;
    }
    Some(sum)
}

/// Spells a span of milliseconds.
pub fn print_span(out: &mut String, ms: u128) {
    let mut rest = ms;
    let start = out.len();
    for (unit, name) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")]
    {
        if rest >= unit {
            let _ = write!(out, "{}{name}", rest / unit);
            rest %= unit;
        }
    }
    if out.len() == start {
        out.push_str("0s");
    }
}

/// Whether a word has the form of a hardware address.
pub fn ether(word: &str) -> Option<u128> {
    let mut value = 0u128;
    let mut count = 0;
    for part in word.split(':') {
        if part.is_empty() || part.len() > 2 || part.starts_with('+') || count == 16 {
            return None;
        }
        value = value << 8 | u128::from(u8::from_str_radix(part, 16).ok()?);
        count += 1;
    }
    (count == 6 || count > 8).then_some(value)
}

/// Reads `1:bbf8`.
pub fn classid(word: &str) -> Option<u128> {
    let (major, minor) = word.split_once(':')?;
    if major.starts_with('+') || minor.starts_with('+') {
        return None;
    }
    let part = |text: &str| match text {
        "" => Some(0),
        _ => u16::from_str_radix(text, 16).ok(),
    };
    Some(u128::from(part(major)?) << 16 | u128::from(part(minor)?))
}

fn symbol(ty: Ty, word: &str) -> Option<u128> {
    ty.symbols.iter().find(|(name, _)| *name == word).map(|(_, value)| u128::from(*value))
}

fn name(ty: Ty, value: u128) -> Option<&'static str> {
    ty.symbols.iter().find(|(_, of)| u128::from(*of) == value).map(|(name, _)| *name)
}

impl Value {
    /// Makes a number of a type.
    pub fn number(ty: Ty, value: u128) -> Self {
        Self { ty, data: Data::Number(value) }
    }

    /// Makes text of a type.
    pub fn text(ty: Ty, text: &str) -> Self {
        Self { ty, data: Data::Text(text.into()) }
    }

    /// Reads the number, if it is one.
    pub fn as_number(&self) -> Option<u128> {
        match self.data {
            Data::Number(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the name of the value, if it has one.
    pub fn name(&self) -> Option<&'static str> {
        name(self.ty, self.as_number()?)
    }

    /// Reads a word as a value of `ty`; `None` if that type has no such value.
    pub fn parse(ty: Ty, word: &str) -> Option<Self> {
        if let Some(value) = symbol(ty, word) {
            return Some(if ty.kind == Kind::Text {
                Self::text(ty, word)
            } else {
                Self::number(ty, value)
            });
        }
        let value = match ty.kind {
            Kind::Text => return Some(Self::text(ty, &canonical_text(ty, word))),
            Kind::Object => return Some(Self::text(ty, word)),
            Kind::Verdict => return None,
            Kind::Ipv4 => word
                .parse::<Ipv4Addr>()
                .map(|at| u128::from(at.to_bits()))
                .ok()
                .or_else(|| number(word)),
            Kind::Ipv6 => {
                word.parse::<Ipv6Addr>().map(Ipv6Addr::to_bits).ok().or_else(|| number(word))
            }
            Kind::Ether => ether(word).or_else(|| number(word)),
            Kind::Time => span(word),
            Kind::Classid => classid(word).or_else(|| number(word)),
            _ if ty.name == "inet_service" => number(word).or_else(|| s::service(word)),
            _ if ty.name == "uid" || ty.name == "gid" => number(word).or_else(|| s::user(word)),
            _ => number(word),
        };
        if let Some(value) = value {
            let fits =
                ty.bits == 0 || ty.bits >= 128 || value >> ty.bits == 0 || ty.kind == Kind::Time;
            return fits.then(|| Self::number(ty, value));
        }
        let digits = word.strip_prefix("0x")?;
        let digits = digits.trim_start_matches('0');
        (ty.kind == Kind::Raw && digits.len() > 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .then(|| Self { ty, data: Data::Digits(digits.to_ascii_lowercase().into()) })
    }

    /// Spells it as text.
    pub fn print(&self, out: &mut String, style: Style) {
        match &self.data {
            Data::Text(text) => print_quoted_as(out, self.ty, text),
            Data::Digits(digits) => {
                let _ = write!(out, "0x{digits}");
            }
            Data::Number(value) => print_number(out, self.ty, *value, style),
        }
    }

    /// Spells it as JSON.
    pub fn json(&self, style: Style) -> Json {
        let value = match &self.data {
            Data::Text(text) => return Json::text(text),
            Data::Digits(digits) => return Json::text(&format!("0x{digits}")),
            Data::Number(value) => *value,
        };
        match self.ty.kind {
            Kind::Boolean => Json::Bool(value != 0),
            Kind::Time => Json::Number((value / 1000).cast_signed()),
            Kind::Bits => {
                let mut names: Vec<Json> = Vec::new();
                let rest = each_bit(self.ty, value, |name| names.push(Json::text(name)));
                if rest != 0 || names.is_empty() {
                    names.push(Json::Number(rest.cast_signed()));
                }
                if names.len() == 1 { names.remove(0) } else { Json::List(names) }
            }
            Kind::Ipv4 | Kind::Ipv6 | Kind::Ether | Kind::Classid => {
                let mut text = String::new();
                print_number(&mut text, self.ty, value, style);
                Json::Text(text)
            }
            _ => match name(self.ty, value).filter(|_| !style.numeric(self.ty)) {
                Some(name) => Json::text(name),
                None if value > i128::MAX.cast_unsigned() || value >> 63 > 1 => {
                    Json::Text(format!("{value:#x}"))
                }
                None => Json::Number(value.cast_signed()),
            },
        }
    }
}

/// Spelling of values, as options of `nft` change it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Protocols as numbers (`-p`).
    pub numeric_proto: bool,
    /// Every value as a number, as at the ends of ranges.
    pub numeric: bool,
}

impl Style {
    fn numeric(self, ty: Ty) -> bool {
        self.numeric || self.numeric_proto && ty == &PROTO || ty.kind == Kind::Code
    }
}

fn each_bit(ty: Ty, value: u128, mut show: impl FnMut(&'static str)) -> u128 {
    let mut rest = value;
    let mut bits: Vec<_> = ty.symbols.iter().filter(|(_, bit)| *bit != 0).collect();
    bits.sort_by_key(|(_, bit)| *bit);
    for (name, bit) in bits {
        let bit = u128::from(*bit);
        if rest & bit == bit {
            rest &= !bit;
            show(name);
        }
    }
    rest
}

fn print_number(out: &mut String, ty: Ty, value: u128, style: Style) {
    if ty.kind == Kind::Bits {
        let start = out.len();
        if value == 0xff && ty.bits == 8 {
            out.push_str("0xff");
            return;
        }
        let rest = each_bit(ty, value, |name| {
            if out.len() > start {
                out.push(',');
            }
            out.push_str(name);
        });
        if rest != 0 || out.len() == start {
            let comma = if out.len() == start { "" } else { "," };
            let _ = write!(out, "{comma}{rest:#x}");
        }
        return;
    }
    if let Some(name) = name(ty, value).filter(|_| !style.numeric(ty)) {
        if ty == &DEVGROUP {
            quoted(out, name);
        } else {
            out.push_str(name);
        }
        return;
    }
    let _ = match ty.kind {
        Kind::Hex => write!(out, "0x{value:0width$x}", width = (ty.bits as usize).div_ceil(4)),
        Kind::Named => {
            write!(out, "0x{value:0width$x}", width = (ty.bits as usize).div_ceil(4))
        }
        Kind::Raw => write!(out, "{value:#x}"),
        Kind::Ipv4 => write!(out, "{}", Ipv4Addr::from_bits(value as u32)),
        Kind::Ipv6 => write!(out, "{}", Ipv6(value)),
        Kind::Ether => {
            let count = if ty.bits == 48 { 6 } else { 16 };
            for at in (0..count).rev() {
                let byte = (value >> (8 * at)) as u8;
                let _ = write!(out, "{byte:02x}{}", if at == 0 { "" } else { ":" });
            }
            Ok(())
        }
        Kind::Time => {
            print_span(out, value);
            Ok(())
        }
        Kind::Classid => write!(out, "{:x}:{:x}", value >> 16, value & 0xffff),
        _ => write!(out, "{value}"),
    };
}

/// An IPv6 address as inet_ntop spells it: with the last four bytes as IPv4 where it is compatible or mapped.
struct Ipv6(u128);

impl std::fmt::Display for Ipv6 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let low = self.0 as u32;
        if self.0 >> 32 == 0 && low >> 16 != 0 {
            return write!(f, "::{}", Ipv4Addr::from_bits(low));
        }
        write!(f, "{}", Ipv6Addr::from_bits(self.0))
    }
}

fn print_quoted_as(out: &mut String, ty: Ty, text: &str) {
    let bare = text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty();
    if bare
        && matches!(ty.name, "iface_index" | "hour" | "day" | "time_date" | "realm" | "cgroupsv2")
    {
        out.push_str(text);
    } else {
        quoted(out, text);
    }
}

/// Writes text in quotes.
pub fn quoted(out: &mut String, text: &str) {
    // Text has no way to say these characters.
    out.push('"');
    out.extend(text.chars().map(|c| if c == '"' || c.is_control() { '\'' } else { c }));
    out.push('"');
}

fn canonical_text(ty: Ty, word: &str) -> String {
    match ty.name {
        "hour" if word.len() == 8 && word.ends_with(":00") => word[..5].to_owned(),
        "time_date" if word.len() == 16 => format!("{word}:00"),
        "time_date" if word.len() == 10 && word.contains('-') => format!("{word} 00:00:00"),
        "day" => {
            let lower = word.to_ascii_lowercase();
            let full = DAY.symbols.iter().find(|(name, value)| {
                let day = name.to_ascii_lowercase();
                lower.len() >= 3 && day.starts_with(&lower)
                    || number(word) == Some(u128::from(*value))
            });
            full.map_or_else(|| word.to_owned(), |(name, _)| (*name).to_owned())
        }
        _ => word.to_owned(),
    }
}
