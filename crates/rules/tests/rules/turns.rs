//! Which chains have their turns at a hook, and in which order.

use host::Host;
use packet::{Checksums, Link, Packet};
use rules::eval::{Alive, By, Memories, Nobody, Turn, Turns, Verdict, turns_at, walk_turn};
use rules::model::{Base, Chain, FallThrough, Family, Hook, Policy, Ruleset, Table};
use rules::revision::{Numbers, Revision};
use rules::save::{LoadOptions, load};
use rules::{Backend, Role, Transit};

fn ruleset(family: Family, text: &str) -> Ruleset {
    load(text, &LoadOptions { family: Some(family), ..LoadOptions::default() }).unwrap().ruleset
}

/// Priorities of `netfilter_ipv4.h`; `nf_nat` has its turn where no rule names its chain.
#[test]
fn tables_have_their_turns_by_priority() {
    let table = |name: &str, chain: &str| format!("*{name}\n:{chain} ACCEPT [0:0]\nCOMMIT\n");
    let rules = ruleset(
        Family::Ipv4,
        &[
            table("filter", "INPUT"),
            table("nat", "POSTROUTING"),
            table("mangle", "PREROUTING"),
            table("raw", "PREROUTING"),
        ]
        .concat(),
    );
    let at = |hook| -> Vec<&str> {
        let turns = turns_at(&rules, hook);
        turns.into_iter().map(|turn| &*rules.tables[turn.table as usize].name).collect()
    };
    assert_eq!(at(Hook::Prerouting), ["raw", "mangle", "nat"]);
    assert_eq!(at(Hook::Input), ["filter", "nat"]);
    assert_eq!(at(Hook::Forward), [""; 0]);
}

/// A base chain without rules.
fn attached(name: &str, hook: Hook, priority: i32, role: Role, policy: Policy) -> Chain {
    let base = Base { policy, ..Base::accepting(hook, priority, role) };
    let (name, base) = (name.into(), Some(base));
    Chain { name, base, fall_through: FallThrough::Return, rules: Vec::new(), line: 0 }
}

fn of_chains(name: &str, chains: Vec<Chain>) -> Table {
    Table { name: name.into(), backend: Backend::Nft, chains }
}

/// `nf_hook_entries_grow` puts a chain before others of its priority; `nf_nat_register_fn` gives chains that translate the
/// kernel's own priority, and each of them a place among the others by its own.
#[test]
fn several_chains_of_a_table_have_turns_at_one_hook() {
    use Hook::{Input, Postrouting, Prerouting};
    use Policy::{Accept, Drop};
    let filter = vec![
        attached("late", Input, 10, Role::Filter, Accept),
        attached("first", Input, 0, Role::Filter, Accept),
        attached("second", Input, 0, Role::Filter, Drop),
        attached("raw", Prerouting, -300, Role::Other, Accept),
    ];
    let nat = vec![
        attached("after", Prerouting, 5, Role::Translate, Accept),
        attached("before", Prerouting, -5, Role::Translate, Accept),
    ];
    let tables = vec![of_chains("inet a", filter), of_chains("ip b", nat)];
    let mut rules = Ruleset { family: Family::Ipv4, backend: Backend::Nft, tables };
    let names = |turns: Turns, rules: &Ruleset| -> Vec<String> {
        let name = |turn: Turn| {
            let chains = &rules.tables[turn.table as usize].chains;
            turn.base.map_or_else(
                || "-".to_owned(),
                |(chain, _)| chains[chain as usize].name.to_string(),
            )
        };
        turns.into_iter().map(name).collect()
    };
    let at = |hook| names(turns_at(&rules, hook), &rules);
    assert_eq!(at(Input), ["second", "first", "late", "-"]);
    assert_eq!(at(Prerouting), ["raw", "before", "after"]);
    assert_eq!(at(Postrouting), ["-"], "the kernel translates here, too");
    let priorities: Vec<i32> = turns_at(&rules, Prerouting).iter().map(|it| it.priority).collect();
    assert_eq!(priorities, [-300, -100, -100]);
    // Chains of that priority that were there before what translates have their turns after it, others before.
    let among = [
        attached("old", Prerouting, -100, Role::Other, Accept),
        attached("first", Postrouting, 100, Role::Translate, Accept),
        attached("young", Prerouting, -100, Role::Other, Accept),
        attached("last", Prerouting, -200, Role::Translate, Accept),
    ];
    let among = vec![of_chains("ip t", among.to_vec())];
    let among = Ruleset { family: Family::Ipv4, backend: Backend::Nft, tables: among };
    assert_eq!(names(turns_at(&among, Prerouting), &among), ["young", "last", "old"]);
    let revision = Revision::first(&rules, &mut Numbers::default());
    for hook in Hook::ALL {
        assert_eq!(revision.turns(hook), turns_at(&rules, hook), "{hook:?}");
    }
    rules.tables.reverse();
    let other = Revision::first(&rules, &mut Numbers::default());
    assert!(!revision.has_hooks_of(&other) && revision.has_hooks_of(&revision));
}

/// Each chain of several at a hook is walked by itself: the model and a revision say the same.
#[test]
fn a_turn_is_the_walk_of_its_own_chain() {
    let chains = vec![
        attached("a", Hook::Forward, 0, Role::Filter, Policy::Accept),
        attached("b", Hook::Forward, 1, Role::Filter, Policy::Drop),
    ];
    let tables = vec![of_chains("inet a", chains)];
    let rules = Ruleset { family: Family::Ipv4, backend: Backend::Nft, tables };
    let revision = Revision::first(&rules, &mut Numbers::default());
    let mut bytes = [0x45; 20];
    let mut packet = Packet::parse(&mut bytes, 20, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let mut transit = Transit::new(&mut packet, Family::Ipv4, Hook::Forward, &host);
    let memories = &mut Memories::of(&rules);
    for (turn, verdict) in
        turns_at(&rules, Hook::Forward).iter().zip([Verdict::Accept, Verdict::Drop])
    {
        let (chain, _) = turn.base.unwrap();
        let expected = Some((verdict, Some(By::Policy { table: 0, chain })));
        let (certain, own) = (Alive::Certain, (turn.table, turn.base));
        let found = walk_turn(&rules, turn, &mut transit, certain, memories, &mut Nobody);
        assert_eq!(found.only(), expected);
        let found = revision.walk_from(own, &mut transit, certain, memories, &mut Nobody);
        assert_eq!(found.only(), expected);
    }
}
