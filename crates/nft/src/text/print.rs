//! A ruleset as `nft list ruleset` of 1.1 prints it.

use super::Printer;
use crate::expr::{Element, Expr};
use crate::json::Json;
use crate::model::{
    Body, Chain, Flowtable, KeyType, Object, Rule, Ruleset, SET_FLAGS, SET_FLAGS_IN_TEXT, Set,
    Table, print_priority,
};
use crate::stmt::Stmt;
use crate::types::{Kind, Ty};

/// Prints a ruleset.
pub fn ruleset(ruleset: &Ruleset, mut p: Printer) -> String {
    for table in &ruleset.tables {
        p.table(table);
    }
    p.out
}

/// Prints a rule by itself.
pub fn rule(rule: &Rule, mut p: Printer) -> String {
    p.rule(rule);
    p.out
}

impl Printer {
    fn handle(&mut self, handle: Option<u64>) {
        if let Some(handle) = handle.filter(|_| self.handles) {
            self.put(&format!(" # handle {handle}"));
        }
    }

    fn head(&mut self, indent: &str, kind: &str, name: &str, handle: Option<u64>) {
        self.put(&format!("{indent}{kind} "));
        self.name(name);
        self.put(" {");
        self.handle(handle);
        self.put("\n");
    }

    fn comment(&mut self, indent: &str, comment: Option<&str>) {
        if let Some(comment) = comment {
            self.put(&format!("{indent}comment \"{comment}\"\n"));
        }
    }

    fn table(&mut self, table: &Table) {
        self.family = table.family;
        self.head("", &format!("table {}", table.family.name()), &table.name, table.handle);
        let mut gap = "";
        if !table.flags.is_empty() {
            self.put(&format!("\tflags {}\n", table.flags.join(",")));
        }
        self.comment("\t", table.comment.as_deref());
        if !table.flags.is_empty() || table.comment.is_some() {
            gap = "\n";
        }
        for object in &table.objects {
            self.put(std::mem::replace(&mut gap, "\n"));
            self.object(object);
        }
        for set in &table.sets {
            self.put(std::mem::replace(&mut gap, "\n"));
            self.set(set);
        }
        for of in &table.flowtables {
            self.put(std::mem::replace(&mut gap, "\n"));
            self.flowtable(of);
        }
        for chain in table.chains.iter().filter(|chain| !chain.name.starts_with("__chain")) {
            self.put(std::mem::replace(&mut gap, "\n"));
            self.chain(chain, table);
        }
        self.put("}\n");
    }

    fn devices(&mut self, devices: &[Box<str>]) {
        self.put("devices = { ");
        self.list(devices, ", ", |device, p| p.put(&format!("\"{device}\"")));
        self.put(" }");
    }

    fn chain(&mut self, chain: &Chain, table: &Table) {
        self.head("\t", "chain", &chain.name, chain.handle);
        self.comment("\t\t", chain.comment.as_deref());
        if let Some(of) = &chain.attached {
            self.put(&format!("\t\ttype {} hook {} ", of.kind, of.hook));
            match &of.devices[..] {
                [] => {}
                [device] => self.put(&format!("device \"{device}\" ")),
                several => {
                    self.devices(several);
                    self.put(" ");
                }
            }
            let policy = if of.drop { "drop" } else { "accept" };
            let priority = print_priority(of.priority, self.family, &of.hook);
            self.put(&format!("priority {priority}; policy {policy};\n"));
        }
        self.rules(&chain.rules, "\t\t", table);
        self.put("\t}\n");
    }

    fn rules(&mut self, rules: &[Rule], indent: &str, table: &Table) {
        for rule in rules {
            self.put(indent);
            // What text cannot say does not load: the line says so.
            let unknown = rule.stmts.iter().any(|stmt| matches!(stmt, Stmt::Unknown(_)));
            self.put(if unknown { "# " } else { "" });
            let start = self.out.len();
            self.rule(rule);
            self.nameless(start, indent, table);
            self.put("\n");
        }
    }

    /// Puts the rules of a chain without a name where its name stands.
    fn nameless(&mut self, start: usize, indent: &str, table: &Table) {
        let Some(at) = self.out[start..].find(" __chain").map(|at| start + at + 1) else { return };
        let len = self.out[at + 7..]
            .find(|c: char| !c.is_ascii_digit())
            .map_or(self.out.len() - at, |len| len + 7);
        let name = self.out[at..at + len].to_owned();
        let Some(chain) = table.chains.iter().find(|chain| *chain.name == *name) else { return };
        if indent.len() > 16 {
            return;
        }
        let rest = self.out.split_off(at + len);
        self.out.truncate(at);
        self.put("{\n");
        self.rules(&chain.rules, &format!("{indent}\t"), table);
        self.put(&format!("{indent}}}{rest}"));
    }

    fn rule(&mut self, rule: &Rule) {
        self.list(&rule.stmts, " ", |stmt, p| stmt.print(p));
        if let Some(comment) = &rule.comment {
            self.put(&format!(" comment \"{comment}\""));
        }
        self.handle(rule.handle);
    }

    fn key_type(&mut self, key: &KeyType) {
        match key {
            KeyType::Types(types) => self.list(types, " . ", |ty, p| p.put(ty.name)),
            KeyType::Of(expr) => expr.print(self),
        }
    }

    fn set(&mut self, set: &Set) {
        let kind = if set.data.is_some() { "map" } else { "set" };
        self.head("\t", kind, &set.name, set.handle);
        self.put(if matches!(set.key, KeyType::Of(_)) { "\t\ttypeof " } else { "\t\ttype " });
        self.key_type(&set.key);
        if let Some(data) = &set.data {
            self.put(" : ");
            let interval = set.elements.iter().any(|element| is_interval(element.data.as_ref()));
            self.put(if interval { "interval " } else { "" });
            self.key_type(data);
        }
        self.put("\n");
        if set.memory {
            self.put("\t\tpolicy memory\n");
        }
        if let Some(size) = set.size {
            self.put(&format!("\t\tsize {size}\n"));
        }
        // A default timeout says that elements have one.
        let flags =
            if set.timeout.is_some() && set.flags & 8 == 0 { set.flags & !4 } else { set.flags };
        if flags != 0 {
            let set_flags = SET_FLAGS_IN_TEXT.iter().filter(|at| flags >> **at & 1 == 1);
            let names: Vec<&str> = set_flags.map(|at| SET_FLAGS[*at]).collect();
            self.put(&format!("\t\tflags {}\n", names.join(",")));
        }
        if !set.stmts.is_empty() {
            self.put("\t\t");
            let stateless = std::mem::replace(&mut self.stateless, true);
            self.list(&set.stmts, " ", |stmt, p| stmt.print(p));
            self.stateless = stateless;
            self.put("\n");
        }
        self.put(if set.auto_merge { "\t\tauto-merge\n" } else { "" });
        for (name, span) in [("timeout", set.timeout), ("gc-interval", set.gc_interval)] {
            if let Some(ms) = span {
                self.put(&format!("\t\t{name} "));
                self.span(ms);
                self.put("\n");
            }
        }
        self.comment("\t\t", set.comment.as_deref());
        self.elements(set);
        self.put("\t}\n");
    }

    fn elements(&mut self, set: &Set) {
        if set.elements.is_empty() {
            return;
        }
        self.put("\t\telements = { ");
        let mut column = 0;
        let most = if set.data.is_some() { 1 } else { per_line(&set.key.types()) };
        for (at, element) in set.elements.iter().enumerate() {
            if at > 0 {
                column += 1;
                let wraps = column >= most || !element_is_short(element);
                self.put(if wraps { ",\n\t\t\t     " } else { ", " });
                column = if wraps { 0 } else { column };
            }
            element.print(self);
        }
        self.put(" }\n");
    }

    fn flowtable(&mut self, of: &Flowtable) {
        self.head("\t", "flowtable", &of.name, of.handle);
        let priority = print_priority(of.priority, crate::model::Family::Netdev, &of.hook);
        self.put(&format!("\t\thook {} priority {priority}\n", of.hook));
        if !of.devices.is_empty() {
            self.put("\t\t");
            self.devices(&of.devices);
            self.put("\n");
        }
        self.put(if of.offload { "\t\tflags offload\n" } else { "" });
        self.put(if of.counter { "\t\tcounter\n" } else { "" });
        self.put("\t}\n");
    }

    fn object(&mut self, object: &Object) {
        self.head("\t", object.body.kind(), &object.name, object.handle);
        self.comment("\t\t", object.comment.as_deref());
        self.body(&object.body);
        self.put("\t}\n");
    }

    fn body(&mut self, body: &Body) {
        match body {
            Body::Counter(Some((packets, bytes))) if !self.stateless => {
                self.put(&format!("\t\tpackets {packets} bytes {bytes}\n"));
            }
            Body::Counter(_) => self.put(""),
            Body::Quota(quota) => {
                self.put("\t\t");
                quota.print(self);
                self.put("\n");
            }
            Body::Limit(limit) => {
                self.put("\t\trate ");
                limit.print(self, true);
                self.put("\n");
            }
            Body::Helper(helper, protocol, family) => {
                self.put(&format!(
                    "\t\ttype \"{helper}\" protocol {protocol}\n\t\tl3proto {family}\n"
                ));
            }
            Body::Timeout(protocol, family, states) => {
                self.put(&format!(
                    "\t\tprotocol {protocol}\n\t\tl3proto {family}\n\t\tpolicy = {{ "
                ));
                self.list(states, ", ", |(state, seconds), p| {
                    p.put(&format!("{state} : "));
                    p.span(u128::from(*seconds) * 1000);
                });
                self.put(" }\n");
            }
            Body::Expectation(protocol, port, timeout, size, family) => {
                self.put(&format!("\t\tprotocol {protocol}\n\t\tdport {port}\n\t\ttimeout "));
                self.span(u128::from(*timeout));
                self.put(&format!("\n\t\tsize {size}\n\t\tl3proto {family}\n"));
            }
            Body::Synproxy(synproxy) => {
                let start = self.out.len();
                synproxy.print(self, "\n\t\t");
                if self.out.len() > start {
                    self.out.remove(start);
                    self.put("\n");
                }
            }
            Body::Secmark(label) => self.put(&format!("\t\t\"{label}\"\n")),
            Body::Tunnel(json) => self.tunnel(json, "\t\t"),
        }
    }

    fn tunnel(&mut self, json: &Json, indent: &str) {
        let Json::Object(members) = json else { return };
        for (name, value) in members {
            match value {
                Json::Object(_) if indent.len() < 8 => {
                    self.put(&format!("{indent}{name} {{\n"));
                    self.tunnel(value, &format!("{indent}\t"));
                    self.put(&format!("{indent}}}\n"));
                }
                Json::Text(text) => self.put(&format!("{indent}{name} {text}\n")),
                other => self.put(&format!("{indent}{name} {}\n", other.to_text())),
            }
        }
    }
}

fn is_interval(data: Option<&Expr>) -> bool {
    match data {
        Some(Expr::Range(_) | Expr::Prefix(..)) => true,
        Some(Expr::Concat(parts)) => parts.iter().any(|part| is_interval(Some(part))),
        _ => false,
    }
}

fn element_is_short(element: &Element) -> bool {
    element.stmts.is_empty()
        && element.comment.is_none()
        && element.timeout.is_none()
        && element.expires.is_none()
}

/// How many elements a line holds.
fn per_line(types: &[Ty]) -> usize {
    match types {
        [ty] if ty.kind == Kind::Ipv4 => 2,
        [ty] if ty.name == "dscp" => 1,
        [ty] if matches!(
            ty.kind,
            Kind::Decimal | Kind::Named | Kind::Bits | Kind::Hex | Kind::Code
        ) =>
        {
            5
        }
        _ => 1,
    }
}
