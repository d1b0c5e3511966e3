//! Draws rulesets: base chains with equal and different priorities at several hooks, chains that they call, sets.

use std::fmt::Write;

use super::super::draft::Draft;
use super::super::draw::Craft;
use super::super::packets::Aim;
use super::pick::{fields, pick_field};
use super::{About, Drawing, Part, Sort, TableFamily};
use crate::generate::Draw;
use crate::scene::{LOCAL_V4, LOCAL_V6};

/// What a base chain is attached to.
#[derive(Debug, Clone)]
pub struct Base {
    /// `filter` or `nat`.
    pub kind: &'static str,
    /// `prerouting`, …
    pub hook: &'static str,
    /// Its priority.
    pub priority: i32,
    /// Whether its policy is to drop.
    pub drops: bool,
}

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// In order.
    pub parts: Vec<Part>,
    /// A chain that it leads to.
    pub to: Option<usize>,
}

/// A chain.
#[derive(Debug, Clone)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// Of a base chain.
    pub base: Option<Base>,
    /// In order.
    pub rules: Vec<Rule>,
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its family.
    pub family: TableFamily,
    /// Its name.
    pub name: String,
    /// Base chains first.
    pub chains: Vec<Chain>,
    /// Name and declaration of each named set or map.
    pub sets: Vec<(String, String)>,
}

/// A ruleset as the generator holds it and the shrinker takes it apart.
#[derive(Debug, Clone, Default)]
pub struct NftRuleset {
    /// Tables in order.
    pub tables: Vec<Table>,
}

/// Where packets end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// Nothing leaves: base chains stand at prerouting, and packets are of any kind.
    Early,
    /// Nothing leaves: base chains stand at prerouting, input and forward, and packets have no options of IPv4, of which the
    /// stack refuses some between hooks.
    Kept,
    /// All packets route forwards: base chains stand at prerouting, forward and postrouting.
    Forwarded,
    /// All packets route forwards, but where rules give them to the host: base chains stand at every hook on the way, and
    /// some of them translate. What leaves is answered.
    Translated,
}

impl Ending {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Early, Self::Kept, Self::Forwarded, Self::Translated];

    /// Whether packets leave, and are compared.
    #[must_use]
    pub fn leaves(self) -> bool {
        matches!(self, Self::Forwarded | Self::Translated)
    }

    fn hooks(self) -> &'static [&'static str] {
        match self {
            Self::Early => &["prerouting"],
            Self::Kept => &["prerouting", "input", "input", "forward"],
            Self::Forwarded => &["prerouting", "forward", "forward", "postrouting"],
            Self::Translated => &["prerouting", "input", "forward", "postrouting"],
        }
    }
}

/// Priorities of base chains: none is that of tracking, whose turn at the same priority depends on when it was registered, nor
/// before that of putting fragments together.
const PRIORITIES: [i32; 12] = [-399, -301, -300, -201, -199, -150, -100, 0, 0, 0, 10, 100];

/// Hooks of chains that translate, and their priorities, which only tell their order among each other.
const NAT_HOOKS: [&str; 5] = ["prerouting", "prerouting", "postrouting", "postrouting", "input"];
const NAT_PRIORITIES: [i32; 8] = [-199, -150, -100, -100, 0, 100, 100, 300];

/// Beginnings of the names of items that few packets answer yes which are not made for them.
const SCARCE: [&str; 24] = [
    "ct count",
    "ct label",
    "ct proto-",
    "exthdr ",
    "fib oifname",
    "interval map",
    "ip option",
    "jhash",
    "nat map of",
    "nat port",
    "nat prefix",
    "numgen",
    "payload ah",
    "payload comp",
    "payload dccp",
    "payload esp",
    "payload icmp",
    "payload igmp",
    "payload sctp",
    "payload udplite",
    "rt ",
    "symhash",
    "tcp option field",
    "tcp option raw",
];

/// What a line of the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// A table or chain.
    Frame,
    /// A set of a table.
    Set(usize, usize),
    /// A rule of a table's chain.
    Rule(usize, usize, usize),
}

impl Rule {
    /// As nft reads it.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts.iter().map(|part| part.piece.text.as_str()).collect::<Vec<_>>().join(" ")
    }
}

impl NftRuleset {
    /// Commands of nft, one a line, and what each line is.
    #[must_use]
    pub fn lines(&self) -> Vec<(Line, String)> {
        let mut lines = Vec::new();
        for (t, table) in self.tables.iter().enumerate() {
            let (family, name) = (table.family.name(), &table.name);
            lines.push((Line::Frame, format!("add table {family} {name}")));
            for chain in &table.chains {
                let base = chain.base.as_ref().map_or(String::new(), |base| {
                    let Base { kind, hook, priority, drops } = base;
                    let policy = if *drops { "drop" } else { "accept" };
                    format!(
                        " {{ type {kind} hook {hook} priority {priority} ; policy {policy} ; }}"
                    )
                });
                lines
                    .push((Line::Frame, format!("add chain {family} {name} {}{base}", chain.name)));
            }
            for (s, (_, declared)) in table.sets.iter().enumerate() {
                let declared = declared.replacen("{F}", family, 1).replacen("{T}", name, 1);
                lines.push((Line::Set(t, s), format!("add {declared}")));
            }
            for (c, chain) in table.chains.iter().enumerate() {
                for (r, rule) in chain.rules.iter().enumerate() {
                    let text = format!("add rule {family} {name} {} {}", chain.name, rule.text());
                    lines.push((Line::Rule(t, c, r), text));
                }
            }
        }
        lines
    }

    /// The commands as one text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (_, line) in self.lines() {
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Number of rules.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        self.tables.iter().flat_map(|table| &table.chains).map(|chain| chain.rules.len()).sum()
    }

    /// Leaves out sets that no rule reads.
    pub fn drop_unread_sets(&mut self) {
        for table in &mut self.tables {
            let rules = table.chains.iter().flat_map(|chain| &chain.rules);
            let read: Vec<String> =
                rules.flat_map(|rule| &rule.parts).flat_map(|part| part.sets.clone()).collect();
            table.sets.retain(|(name, _)| read.contains(name));
        }
    }

    /// Any rule: the numbers of its table, its chain and itself.
    fn pick_rule(&self, draw: &mut Draw) -> Option<(usize, usize, usize)> {
        let table = pick_index(draw, self.tables.len())?;
        let chains = &self.tables[table].chains;
        let chain = pick_index(draw, chains.len())?;
        Some((table, chain, pick_index(draw, chains[chain].rules.len())?))
    }

    /// Whether a rule tries something that few packets have by chance.
    fn is_scarce(&self, (table, chain, rule): (usize, usize, usize)) -> bool {
        let parts = &self.tables[table].chains[chain].rules[rule].parts;
        let scarce = |item: &String| SCARCE.iter().any(|begin| item.starts_with(begin));
        parts.iter().flat_map(|part| &part.items).any(scarce)
    }

    /// The edits that bring a packet to a rule: those of the jumps on the way, and its own.
    fn way_to(&self, table: usize, chain: usize, rule: usize) -> Vec<Craft> {
        let chains = &self.tables[table].chains;
        let mut crafts = Vec::new();
        let mut here = Some((chain, rule));
        while let Some((chain, rule)) = here {
            let parts = &chains[chain].rules[rule].parts;
            crafts.extend(parts.iter().rev().map(|part| part.piece.craft.clone()));
            here = chains[..chain].iter().enumerate().find_map(|(from, caller)| {
                let jump = caller.rules.iter().position(|rule| rule.to == Some(chain))?;
                Some((from, jump))
            });
        }
        crafts.reverse();
        crafts
    }
}

impl Aim for NftRuleset {
    fn aim(&self, draw: &mut Draw, draft: &mut Draft) {
        if !draw.forward() && draw.one_in(4) {
            draft.destination = own_address(draw);
        }
        let Some(mut place) = self.pick_rule(draw) else { return };
        for _ in 0..2 {
            if self.is_scarce(place) {
                break;
            }
            place = self.pick_rule(draw).unwrap_or(place);
        }
        let (table, chain, rule) = place;
        for craft in self.way_to(table, chain, rule) {
            craft(draft);
        }
    }
}

fn pick_index(draw: &mut Draw, len: usize) -> Option<usize> {
    (len > 0).then(|| draw.rng.usize(..len))
}

fn own_address(draw: &mut Draw) -> [u8; 16] {
    let mut address = [0; 16];
    if draw.ipv6() {
        let text = draw.pick(&LOCAL_V6);
        return text.parse().map_or(address, |own: std::net::Ipv6Addr| own.octets());
    }
    let text = draw.pick(&LOCAL_V4);
    if let Ok(own) = text.parse::<std::net::Ipv4Addr>() {
        address[..4].copy_from_slice(&own.octets());
    }
    address
}

/// Draws a ruleset whose first table is of a family.
pub fn draw(draw: &mut Draw, family: TableFamily, ending: Ending, only: &[String]) -> NftRuleset {
    let mut ruleset = NftRuleset::default();
    let count = if draw.one_in(3) { 2 } else { 1 };
    let told = !draw.one_in(4);
    for number in 0..count {
        // Tables of other families stand beside it now and then.
        let beside = match family {
            TableFamily::Inet => draw.pick(&TableFamily::ALL),
            _ => family,
        };
        let family = if number == 0 { family } else { beside };
        let (sets, hooks, about) = Default::default();
        let mut drawing = Drawing { draw, family, only, told, sets, hooks, about };
        let table = table(&mut drawing, format!("t{number}"), ending);
        ruleset.tables.push(table);
    }
    ruleset
}

/// Where a chain of a table stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    index: usize,
    is_base: bool,
    /// The hook at which it translates, or at which chains do that lead to it.
    nat: Option<&'static str>,
}

fn table(drawing: &mut Drawing<'_>, name: String, ending: Ending) -> Table {
    let translates = ending == Ending::Translated && drawing.may("nat");
    let nats = if translates { 1 + drawing.draw.rng.usize(..3) } else { 0 };
    let bases = 1 + nats + drawing.draw.rng.usize(..if translates { 3 } else { 4 });
    let count = bases + drawing.draw.rng.usize(..5);
    let (mut chains, mut places) = (Vec::new(), Vec::new());
    for index in 0..count {
        let is_base = index < bases;
        let nat = if is_base { index < nats } else { translates && drawing.draw.one_in(2) };
        let nat = nat.then(|| drawing.draw.pick(&NAT_HOOKS));
        let base = is_base.then(|| base(drawing, ending, nat));
        drawing.hooks.extend(base.as_ref().map(|base| base.hook));
        let name = format!("{}{index}", if is_base { "b" } else { "c" });
        chains.push(Chain { name, base, rules: Vec::new() });
        places.push(Place { index, is_base, nat });
    }
    for (place, chain) in places.iter().zip(&mut chains) {
        let later = &places[place.index.max(bases - 1) + 1..];
        let fits = |callee: &&Place| callee.nat.is_none() || callee.nat == place.nat;
        let callees: Vec<usize> = later.iter().filter(fits).map(|callee| callee.index).collect();
        fill(drawing, chain, *place, &callees);
    }
    Table { family: drawing.family, name, chains, sets: std::mem::take(&mut drawing.sets) }
}

fn fill(drawing: &mut Drawing<'_>, chain: &mut Chain, place: Place, callees: &[usize]) {
    let rules = if place.is_base { 3 } else { 1 } + drawing.draw.rng.usize(..5);
    if place.is_base {
        // Counts every packet that comes here.
        chain.rules.push(Rule { parts: vec![Part::counter()], to: None });
    }
    for _ in 0..rules {
        chain.rules.push(rule(drawing, callees, place));
    }
    chain.rules.push(Rule { parts: vec![Part::counter()], to: None });
}

fn base(drawing: &mut Drawing<'_>, ending: Ending, nat: Option<&'static str>) -> Base {
    if let Some(hook) = nat {
        let priority = drawing.draw.pick(&NAT_PRIORITIES);
        return Base { kind: "nat", hook, priority, drops: false };
    }
    let hook = drawing.draw.pick(ending.hooks());
    Base {
        kind: "filter",
        hook,
        priority: drawing.draw.pick(&PRIORITIES),
        drops: drawing.may("drop policy") && drawing.draw.one_in(8),
    }
}

fn rule(drawing: &mut Drawing<'_>, callees: &[usize], place: Place) -> Rule {
    drawing.about = About::default();
    let counts = !drawing.draw.one_in(3);
    let mut parts = Vec::new();
    let mut to = None;
    let mut add = |part: Part| {
        // What is before and after it is counted, if the rule counts in its middle. nft 1.0.6 makes one test of two with
        // `!=` that follow each other, which then asks for less than both.
        let tells = part.sort != Sort::Statement && (counts || part.piece.text.contains("!="));
        if tells && !is_counted(&parts) {
            parts.push(Part::counter());
        }
        parts.push(part);
        if tells {
            parts.push(Part::counter());
        }
    };
    // Few packets begin flows, and of those many are to come to what translates.
    let tests = match place.nat {
        Some(_) => drawing.draw.pick(&[0, 0, 1, 1, 1, 2]),
        None => drawing.draw.pick(&[0, 1, 1, 1, 2, 2, 3]),
    };
    for _ in 0..tests {
        if let Some(part) = test(drawing) {
            add(part);
        }
    }
    if drawing.draw.one_in(3)
        && let Some(part) = drawing.middle()
    {
        add(part);
        if drawing.draw.one_in(4)
            && let Some(part) = test(drawing)
        {
            add(part);
        }
    }
    if drawing.draw.one_in(5)
        && let Some(part) = drawing.spending()
    {
        add(part);
    }
    if drawing.may("vmap continue") && drawing.draw.one_in(8) {
        let fields = fields(drawing, 2);
        if !fields.is_empty() {
            add(drawing.vmap_test(&fields));
        }
    }
    if let Some(hook) = place.nat
        && !drawing.draw.one_in(3)
    {
        let mut translation = drawing.translation(hook);
        let last = translation.pop();
        translation.into_iter().for_each(add);
        if !is_counted(&parts) {
            parts.push(Part::counter());
        }
        parts.extend(last);
        return Rule { parts, to: None };
    }
    if !is_counted(&parts) {
        parts.push(Part::counter());
    }
    let asks = parts.iter().any(|part| part.sort == Sort::Test);
    if drawing.draw.one_in(6) && drawing.may("vmap") {
        let fields = fields(drawing, 3);
        if !fields.is_empty() {
            let (part, to) = drawing.vmap(&fields, callees);
            parts.push(part);
            return Rule { parts, to };
        }
    }
    if let Some((verdict, chain)) = drawing.verdict(callees, place.is_base, asks) {
        parts.push(verdict);
        to = chain.or(to);
    }
    Rule { parts, to }
}

/// Whether a counter says how many packets come to what is next.
fn is_counted(parts: &[Part]) -> bool {
    let told = parts.iter().rev().find(|part| part.sort != Sort::Statement);
    told.is_some_and(|part| part.sort == Sort::Counter)
}

/// A test, if what it tries may be drawn.
fn test(drawing: &mut Drawing<'_>) -> Option<Part> {
    if drawing.draw.one_in(8) && drawing.may("op concatenation") {
        let before = drawing.about;
        let fields = fields(drawing, 3);
        if fields.len() > 1 {
            return Some(drawing.concatenation(&fields));
        }
        drawing.about = before;
    }
    let field = pick_field(drawing)?;
    let part = drawing.compare(field);
    part.items.iter().all(|item| drawing.may(item)).then_some(part)
}
