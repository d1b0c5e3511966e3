//! The search for a route: policy rules, tables, the longest prefix, the best of several routes to it.
//!
//! A rule whose answer is open adds what it would give to what remains possible; if that is one thing in the end, that
//! is the answer. Source: kernel `fib_table_lookup` (`net/ipv4/fib_trie.c`), `__fib_lookup` (`net/ipv4/fib_rules.c`),
//! `fib6_table_lookup`, `rt6_score_route` (`net/ipv6/route.c`).

use std::net::IpAddr;

use crate::Host;
use crate::policy::{Action, Flow, Policy, PolicyRule};
use crate::route::{DEFAULT, LOCAL, MAIN, NextState, Refusal, Route, RouteKind};
use crate::routed::Missing;
use crate::sysctl::Key;
use crate::tables::Table;

/// What a search came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<'h> {
    /// A route; `tied` with another one as good by another interface.
    Route { route: &'h Route, tied: bool },
    /// A route or a rule that refuses.
    Refused(Refusal),
    /// No route.
    Nothing,
    /// The answer depends on what is not known.
    Open(Missing),
}

/// How a search is narrowed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Narrow {
    /// IPv6: only routes by this interface (group, link-local and loopback destinations).
    pub(crate) strict: bool,
    /// Interfaces without carrier count.
    pub(crate) ignore_carrier: bool,
    /// IPv6: of the routes to a prefix the first by the interface is taken, else the first, whatever their preference.
    pub(crate) by_device: bool,
}

impl Host {
    /// The route of a flow.
    pub(crate) fn search<'h>(&'h self, flow: &Flow<'_>, narrow: Narrow) -> Found<'h> {
        let is_v6 = flow.destination.is_ipv6();
        let Some(routes) = &self.routes else { return Found::Open(Missing::Routes) };
        let tables = routes.tables();
        if tables.names(is_v6).next().is_none() {
            return Found::Open(Missing::Routes);
        }
        let Some(policy) = self.policy.as_ref().filter(|policy| policy.of(is_v6).is_some()) else {
            return self.search_usual(flow, narrow);
        };
        if !is_v6 && !self.is_policy_custom() {
            let merged = self.in_table(tables.merged(), flow, narrow);
            return match (merged, tables.of_name(false, DEFAULT)) {
                (Found::Nothing, Some(table)) => self.in_table(table, flow, narrow),
                (found, _) => found,
            };
        }
        self.search_rules(policy, flow, narrow)
    }

    /// Without policy rules: the usual ones, unless there are tables that only others ask.
    fn search_usual<'h>(&'h self, flow: &Flow<'_>, narrow: Narrow) -> Found<'h> {
        let is_v6 = flow.destination.is_ipv6();
        let Some(routes) = &self.routes else { return Found::Open(Missing::Routes) };
        let tables = routes.tables();
        let is_usual = |name: &str| matches!(name, LOCAL | MAIN | DEFAULT | "unspec");
        if !tables.names(is_v6).all(is_usual) {
            let local = tables.of_name(is_v6, LOCAL);
            return match local.map(|table| self.in_table(table, flow, narrow)) {
                Some(found @ Found::Route { .. }) => found,
                _ => Found::Open(Missing::Rules),
            };
        }
        let names: &[&str] = if is_v6 { &[LOCAL, MAIN] } else { &[DEFAULT] };
        let merged = (!is_v6).then(|| tables.merged());
        let named = names.iter().filter_map(|name| tables.of_name(is_v6, name));
        let all = merged.into_iter().chain(named);
        let mut found = all.map(|table| self.in_table(table, flow, narrow));
        found.find(|found| *found != Found::Nothing).unwrap_or(Found::Nothing)
    }

    fn search_rules<'h>(&'h self, policy: &Policy, flow: &Flow<'_>, narrow: Narrow) -> Found<'h> {
        let mut possible: Option<(Found<'h>, Missing)> = None;
        let settled = |possible: Option<(Found<'h>, Missing)>, found: Found<'h>| match possible {
            Some((other, why)) if other != found => Found::Open(why),
            _ => found,
        };
        let mut place = 0;
        while let Some((at, rule)) = policy.next(flow, place) {
            place = at + 1;
            let holds = if rule.l3mdev { self.in_domain(flow) } else { rule.holds(flow) };
            if holds == Some(false) {
                continue;
            }
            if let Action::Goto(to) = rule.action {
                let rules = policy.of(flow.destination.is_ipv6()).unwrap_or_default();
                let target = rules.iter().position(|rule| rule.priority >= to);
                let target = target.filter(|target| rules[*target].priority == to);
                match (holds, target) {
                    // A jump to where no rule is goes on with the next one.
                    (_, None) => {}
                    (Some(true), Some(target)) if target >= place => place = target,
                    _ => return Found::Open(rule.lacks(flow)),
                }
                continue;
            }
            let found = self.act(rule, flow, narrow);
            match (holds, found) {
                (_, Found::Nothing) => {}
                (Some(_), found) => return settled(possible, found),
                (None, found) => match possible {
                    Some((other, why)) if other != found => return Found::Open(why),
                    Some(_) => {}
                    None => possible = Some((found, rule.lacks(flow))),
                },
            }
        }
        settled(possible, Found::Nothing)
    }

    /// What a rule that holds gives; `Nothing` is that the next one is asked.
    fn act<'h>(&'h self, rule: &PolicyRule, flow: &Flow<'_>, narrow: Narrow) -> Found<'h> {
        let is_v6 = flow.destination.is_ipv6();
        let tables = self.routes.as_ref().map(|routes| routes.tables());
        match &rule.action {
            Action::Nop | Action::Goto(_) => Found::Nothing,
            Action::Open => Found::Open(Missing::Policy),
            Action::Refuse(refusal) => Found::Refused(*refusal),
            Action::Lookup(name) => {
                let table = tables.and_then(|tables| tables.of_name(is_v6, name));
                let found =
                    table.map_or(Found::Nothing, |table| self.in_table(table, flow, narrow));
                match (found, rule.suppress) {
                    (Found::Route { route, .. }, Some(bits)) if route.destination.bits <= bits => {
                        Found::Nothing
                    }
                    (found, _) => found,
                }
            }
        }
    }

    /// Whether the interface of a flow belongs to a routing domain.
    fn in_domain(&self, flow: &Flow<'_>) -> Option<bool> {
        if self.links.is_empty() {
            return None;
        }
        let is_in = |name: Option<&str>| {
            let master = name.and_then(|name| self.links.named(name)?.master.as_deref());
            let master = master.and_then(|master| self.links.named(master));
            master.is_some_and(|master| master.kind == crate::LinkKind::Vrf)
        };
        (!is_in(flow.input) && !is_in(flow.output)).then_some(false)
    }

    pub(crate) fn in_table<'h>(
        &'h self,
        table: &'h Table,
        flow: &Flow<'_>,
        narrow: Narrow,
    ) -> Found<'h> {
        let Some(routes) = &self.routes else { return Found::Open(Missing::Routes) };
        for places in table.holding(flow.destination) {
            let mut several = places.iter().map(|place| &routes.all()[*place as usize]);
            let found = match flow.destination {
                IpAddr::V4(_) => several.find_map(|route| self.take_v4(route, flow, narrow)),
                IpAddr::V6(_) if narrow.by_device => first_v6(several, flow, narrow),
                IpAddr::V6(_) => self.best_v6(several, flow, narrow),
            };
            if let Some(found) = found {
                return found;
            }
        }
        Found::Nothing
    }

    /// What an IPv4 route of a fitting prefix gives; `None` if it is not for this flow.
    fn take_v4<'h>(
        &'h self,
        route: &'h Route,
        flow: &Flow<'_>,
        narrow: Narrow,
    ) -> Option<Found<'h>> {
        match (route.tos.unwrap_or(0), flow.tos) {
            (0, _) => {}
            (_, None) => return Some(Found::Open(Missing::Service)),
            (wanted, Some(has)) if wanted != has & 0x1c => return None,
            _ => {}
        }
        match route.kind {
            RouteKind::Refused(Refusal::Throw) => return Some(Found::Nothing),
            RouteKind::Refused(refusal) => return Some(Found::Refused(refusal)),
            _ => {}
        }
        let is_live = |state, device: Option<&str>| self.is_live(state, device, false, narrow);
        let fits = |device: Option<&str>| flow.output.is_none() || flow.output == device;
        let alone = route.ways.is_empty() && is_live(route.state, route.device.as_deref());
        let mut ways = route.ways.iter().filter(|way| is_live(way.state, way.device.as_deref()));
        let fits =
            alone && fits(route.device.as_deref()) || ways.any(|way| fits(way.device.as_deref()));
        fits.then_some(Found::Route { route, tied: false })
    }

    /// The best of the IPv6 routes to one prefix.
    fn best_v6<'h>(
        &'h self,
        routes: impl Iterator<Item = &'h Route>,
        flow: &Flow<'_>,
        narrow: Narrow,
    ) -> Option<Found<'h>> {
        // The interface that a search prefers, and of strict ones demands: that of a packet that came in.
        let wanted = flow.output.or(flow.input.filter(|input| *input != "lo"));
        let mut best: Option<((u8, bool), &Route, bool)> = None;
        for route in routes {
            let is_by = |device: Option<&str>| wanted.is_some() && device == wanted;
            let device = route.device.as_deref();
            let by_wanted =
                is_by(device) || route.ways.iter().any(|way| is_by(way.device.as_deref()));
            let by_live = self.is_live(route.state, device, true, narrow)
                && route.from.is_none_or(|from| from.holds(flow.source));
            let is_bound = narrow.strict && wanted.is_some() || flow.output.is_some();
            if !by_live || is_bound && !by_wanted {
                continue;
            }
            // Metrics ascend, and a route from some places comes before one from anywhere.
            if best
                .is_some_and(|(_, best, _)| (best.metric, best.from) != (route.metric, route.from))
            {
                break;
            }
            let score = (route.preference, by_wanted);
            match &mut best {
                Some((highest, _, _)) if *highest > score => {}
                Some((highest, first, tied)) if *highest == score => {
                    *tied |= first.device != route.device
                }
                _ => best = Some((score, route, false)),
            }
        }
        let (_, route, tied) = best?;
        Some(given_v6(route, tied))
    }

    fn is_live(&self, state: NextState, device: Option<&str>, is_v6: bool, narrow: Narrow) -> bool {
        let ignores = || {
            let name = device.unwrap_or_default();
            self.either(is_v6, Some(name), Key::IgnoreLinkdown).unwrap_or(false)
        };
        match state {
            NextState::Good => true,
            NextState::LinkDown => narrow.ignore_carrier || !ignores(),
            NextState::Dead => false,
        }
    }
}

/// What an IPv6 route that was chosen gives.
fn given_v6(route: &Route, tied: bool) -> Found<'_> {
    match route.kind {
        RouteKind::Refused(Refusal::Throw) => Found::Nothing,
        RouteKind::Refused(refusal) => Found::Refused(refusal),
        _ => Found::Route { route, tied },
    }
}

/// Returns the first of the IPv6 routes to one prefix that uses the interface, else the first, if any interface will
/// do.
fn first_v6<'h>(
    routes: impl Iterator<Item = &'h Route>,
    flow: &Flow<'_>,
    narrow: Narrow,
) -> Option<Found<'h>> {
    // Those from some places come first, and are asked apart.
    let routes = routes.filter(|route| route.from.is_none_or(|from| from.holds(flow.source)));
    let routes: Vec<&Route> = routes.collect();
    routes.chunk_by(|a, b| a.from == b.from).find_map(|same| {
        let is_by = |route: &&&Route| {
            flow.output.is_some() && route.devices().any(|name| Some(name) == flow.output)
        };
        let is_dead = |route: &Route| match route.ways.as_slice() {
            [] => route.state == NextState::Dead,
            ways => ways.iter().all(|way| way.state == NextState::Dead),
        };
        let by_device = same.iter().filter(|route| !is_dead(route)).find(is_by);
        let first = same.first().filter(|route| !narrow.strict && !is_dead(route));
        by_device.or(first).map(|route| given_v6(route, false))
    })
}
