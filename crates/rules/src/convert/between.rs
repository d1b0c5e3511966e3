//! A rule of one family in another's words: the tests of its header, and where it leads.
//!
//! Source: the manual pages of the four tools; both sides of each pair were measured to match the same packets.

use super::draft::{Draft, ethertype, prefix};
use super::extension;
use crate::family::Family;
use crate::header::{Field, FieldTest, Header, IfaceTest, MaskedAddr};
use crate::model::{Action, Chain, Rule, Table};
use crate::names::ethertype_name;
use crate::value;

/// The chain that a rule jumps or goes to.
pub(super) fn jump<'t>(table: &'t Table, rule: &Rule) -> Option<&'t Chain> {
    match rule.action {
        Action::Jump(to) | Action::Goto(to) => table.chains.get(to as usize),
        _ => None,
    }
}

/// Translates a rule, or says what cannot be.
pub(super) fn translate(
    from: Family,
    to: Family,
    table: &Table,
    rule: &Rule,
) -> Result<Draft, String> {
    let mut draft = Draft::default();
    let none = Header::default();
    let header = rule.header.as_ref().unwrap_or(&none);
    for (option, test) in [("-i", header.input()), ("-o", header.output())] {
        draft.tests.extend(test.map(|test| iface(option, test)));
    }
    match (from, to) {
        _ if from.is_ip() && to.is_ip() => ip_to_ip(header, &mut draft)?,
        (_, Family::Bridge) if from.is_ip() => ip_to_bridge(from, header, &mut draft)?,
        (Family::Bridge, _) if to.is_ip() => bridge_to_ip(to, header, &mut draft)?,
        (Family::Arp, Family::Bridge) => arp_to_bridge(header, &mut draft)?,
        (Family::Bridge, Family::Arp) => bridge_to_arp(header, &mut draft)?,
        _ => return Err(format!("{} rules see no packets of {}", to.tool(), from.tool())),
    }
    for used in &rule.matches {
        extension::one_match(from, to, used, &mut draft)?;
    }
    draft.verdict = match &rule.action {
        Action::None => match to.dialect().no_verdict {
            Some(verdict) => format!("-j {verdict}"),
            None => String::new(),
        },
        Action::Accept => "-j ACCEPT".to_owned(),
        Action::Drop => "-j DROP".to_owned(),
        Action::Return => "-j RETURN".to_owned(),
        Action::Jump(_) | Action::Goto(_) => {
            let word = if matches!(rule.action, Action::Goto(_)) { "-g" } else { "-j" };
            if word == "-g" && !(from.is_ip() && to.is_ip()) {
                return Err("-g".to_owned());
            }
            format!("{word} {}", jump(table, rule).map_or("?", |chain| &chain.name))
        }
        Action::Target(used) => extension::target(from, to, used)?,
    };
    Ok(draft)
}

fn iface(option: &str, test: &IfaceTest) -> String {
    let (bang, plus) = (bang(test.invert), if test.prefix { "+" } else { "" });
    format!("{bang}{option} {}{plus}", test.name)
}

fn bang(invert: bool) -> &'static str {
    if invert { "! " } else { "" }
}

fn address(option: &str, test: Option<MaskedAddr>, family: Family) -> Option<String> {
    let test = test?;
    let text = value::short_network_text(&test.addr, &test.mask, family.addr_len());
    Some(format!("{}{option} {text}", bang(test.invert)))
}

fn ip_to_ip(header: &Header, draft: &mut Draft) -> Result<(), String> {
    if header.source().is_some() || header.destination().is_some() {
        return Err("an address of the other family".to_owned());
    }
    if header.fragment().is_some() {
        return Err("-f".to_owned());
    }
    if let Some(protocol) = header.protocol() {
        if matches!(protocol.number, 1 | 58) {
            return Err("-p: each family has an ICMP of its own".to_owned());
        }
        draft.test(format!("{}-p {}", bang(protocol.invert), protocol.number));
    }
    Ok(())
}

fn ip_to_bridge(from: Family, header: &Header, draft: &mut Draft) -> Result<(), String> {
    let prefix = prefix(from);
    draft.test(format!("-p {}", ethertype(from).unwrap_or_default()));
    draft.tests.extend(address(&format!("--{prefix}-src"), header.source(), from));
    draft.tests.extend(address(&format!("--{prefix}-dst"), header.destination(), from));
    if header.fragment().is_some() {
        return Err("-f".to_owned());
    }
    if let Some(protocol) = header.protocol() {
        draft.test(format!("{}--{prefix}-proto {}", bang(protocol.invert), protocol.number));
    }
    Ok(())
}

/// The EtherType of a bridge rule must be the family's own.
fn of_ethertype(to: Family, header: &Header, draft: &mut Draft) -> Result<(), String> {
    let test = header.fields().iter().find(|test| test.field == Field::EtherType);
    match test {
        None => draft.notes.push(format!("frames that are not {}", to.tool())),
        Some(test) if !test.invert && ethertype_name(test.value_u16()) == ethertype(to) => {}
        Some(_) => return Err("-p: frames of other types".to_owned()),
    }
    if header.logical_input().is_some() || header.logical_output().is_some() {
        return Err("--logical-in, --logical-out".to_owned());
    }
    Ok(())
}

fn bridge_to_ip(to: Family, header: &Header, draft: &mut Draft) -> Result<(), String> {
    of_ethertype(to, header, draft)?;
    if header.destination().is_some() {
        return Err("-d: an Ethernet destination".to_owned());
    }
    if let Some(source) = header.source() {
        if source.mask[..6] != [0xff; 6] {
            return Err("-s: a masked Ethernet address".to_owned());
        }
        let text = value::masked_mac_text(first_six(&source.addr), [0xff; 6]);
        draft.test(format!("-m mac {}--mac-source {text}", bang(source.invert)));
    }
    Ok(())
}

fn first_six(bytes: &[u8; 16]) -> [u8; 6] {
    std::array::from_fn(|i| bytes[i])
}

fn arp_to_bridge(header: &Header, draft: &mut Draft) -> Result<(), String> {
    draft.test("-p ARP");
    draft.tests.extend(address("--arp-ip-src", header.source(), Family::Arp));
    draft.tests.extend(address("--arp-ip-dst", header.destination(), Family::Arp));
    for test in header.fields() {
        let FieldTest { field, value, mask, invert } = *test;
        let whole = mask[..2] == [0xff; 2];
        let bang = bang(invert);
        match field {
            Field::SenderHardware => {
                draft.test(format!("{bang}--arp-mac-src {}", value::masked_mac_text(value, mask)));
            }
            Field::TargetHardware => {
                draft.test(format!("{bang}--arp-mac-dst {}", value::masked_mac_text(value, mask)));
            }
            Field::Operation if whole => {
                draft.test(format!("{bang}--arp-op {}", test.value_u16()));
            }
            Field::HardwareType if whole => {
                draft.test(format!("{bang}--arp-htype {}", test.value_u16()));
            }
            Field::ProtocolType if whole => {
                draft.test(format!("{bang}--arp-ptype {:#x}", test.value_u16()));
            }
            // What every rule tests: on a bridge of Ethernet no address is longer.
            Field::HardwareLen if value[0] == 6 && mask[0] == 0xff && !invert => {}
            _ => return Err("a test of lengths, or under a mask".to_owned()),
        }
    }
    Ok(())
}

fn bridge_to_arp(header: &Header, draft: &mut Draft) -> Result<(), String> {
    of_ethertype(Family::Arp, header, draft)?;
    if header.source().is_some() || header.destination().is_some() {
        return Err("-s, -d: addresses of the frame".to_owned());
    }
    draft.notes.push("hardware types other than Ethernet".to_owned());
    Ok(())
}
