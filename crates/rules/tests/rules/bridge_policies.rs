//! Policies of a bridge's user chains: every layout and every revision ends a chain as the model does.

use host::Host;
use packet::Packet;
use rules::Transit;
use rules::eval::{Alive, By, Memories, Nobody, Verdict, Verdicts, walk};
use rules::model::{Counters, Family, Hook, Ruleset};
use rules::revision::{Numbers, Revision};
use rules::save::{LoadOptions, load, print_ruleset};

const RULES: &str = "*filter\n:INPUT ACCEPT\n:FORWARD DROP\n:OUTPUT ACCEPT\n\
    :drops DROP\n:accepts ACCEPT\n:returns RETURN\n\
    -A FORWARD -s 02:00:00:00:00:01 -j drops\n\
    -A FORWARD -s 02:00:00:00:00:02 -j accepts\n\
    -A FORWARD -s 02:00:00:00:00:03 -j returns\n\
    -A accepts -d 02:00:00:00:00:99 -j DROP\n";

fn ruleset(text: &str) -> Ruleset {
    let options = LoadOptions { family: Some(Family::Bridge), ..LoadOptions::default() };
    load(text, &options).unwrap_or_else(|error| panic!("{error}\n{text}")).ruleset
}

/// What walks make of a frame from this host.
fn at_forward(host: u8, walks: impl FnOnce(&mut Transit<'_, '_>) -> Verdicts) -> Verdicts {
    let mut frame = [0; 60];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, host]);
    frame[12..14].copy_from_slice(&[8, 0]);
    let headers = packet::parse_frame(&frame, 60);
    let mut packet = Packet::with_headers(&mut frame, headers);
    let host = Host::default();
    walks(&mut Transit::new(&mut packet, Family::Bridge, Hook::Forward, &host))
}

fn by_model(rules: &Ruleset, host: u8) -> Verdicts {
    let memories = &mut Memories::of(rules);
    at_forward(host, |transit| walk(rules, 0, transit, Alive::Certain, memories, &mut Nobody))
}

fn by_revision(revision: &Revision, host: u8) -> Verdicts {
    let memories = &mut Memories::default();
    at_forward(host, |transit| revision.walk(0, transit, Alive::Certain, memories, &mut Nobody))
}

#[test]
fn packed_chains_end_user_chains_as_the_model_does() {
    let rules = ruleset(RULES);
    let revision = Revision::first(&rules, &mut Numbers::default());
    let expected = [Verdict::Drop, Verdict::Accept, Verdict::Drop, Verdict::Drop];
    for (host, expected) in (1..).zip(expected) {
        let model = by_model(&rules, host);
        assert_eq!(model.only().map(|(verdict, _)| verdict), Some(expected), "{host}");
        assert_eq!(by_revision(&revision, host), model, "{host}");
    }
    let by = by_model(&rules, 2).only().unwrap().1;
    assert!(matches!(by, Some(By::Policy { chain: 4, .. })), "{by:?}: the user chain's own");
}

#[test]
fn revisions_keep_and_change_policies_of_user_chains() {
    let rules = ruleset(RULES);
    let mut numbers = Numbers::default();
    let first = Revision::first(&rules, &mut numbers);
    let same = |revision: &Revision| {
        let model = revision.ruleset();
        (1..5).for_each(|host| assert_eq!(by_revision(revision, host), by_model(&model, host)));
    };
    let printed = |revision: &Revision| {
        print_ruleset(&revision.ruleset(), false, |_, _, _| Counters::default())
    };
    let verdict = |revision: &Revision, host| by_revision(revision, host).only().unwrap().0;
    assert_eq!(printed(&first), print_ruleset(&rules, false, |_, _, _| Counters::default()));
    same(&first);

    let text = "*filter\n-P drops ACCEPT\n-N new\n-P new ACCEPT\n-A returns -j new\n";
    let second = first.changed_by(text, &mut numbers).unwrap();
    same(&second);
    assert_eq!([1, 3].map(|host| verdict(&second, host)), [Verdict::Accept; 2]);
    assert_eq!([1, 3].map(|host| verdict(&first, host)), [Verdict::Drop; 2], "it stays as it was");

    let third = second.changed_by("*filter\n:drops RETURN\n-F returns\n-X new\n", &mut numbers);
    let third = third.unwrap();
    same(&third);
    assert!(printed(&third).contains(":drops RETURN"), "{}", printed(&third));
    // What takes the place of the deleted chain has no policy of it.
    let fourth =
        third.changed_by("*filter\n-N other\n-A returns -j other\n", &mut numbers).unwrap();
    assert_eq!(verdict(&fourth, 3), Verdict::Drop);

    let again = fourth.replaced_by(ruleset(RULES), &mut numbers).unwrap();
    same(&again);
    assert_eq!([1, 2].map(|host| verdict(&again, host)), [Verdict::Drop, Verdict::Accept]);
}

#[test]
fn only_bridges_have_policies_of_user_chains() {
    let text = "*filter\n:INPUT ACCEPT [0:0]\n:a - [0:0]\nCOMMIT\n";
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    let rules = load(text, &options).unwrap().ruleset;
    let mut numbers = Numbers::default();
    let first = Revision::first(&rules, &mut numbers);
    for line in ["-P a DROP", ":a DROP"] {
        let refused = first.changed_by(&format!("*filter\n{line}\nCOMMIT\n"), &mut numbers);
        assert!(refused.unwrap_err().what.contains("built-in chain"), "{line}");
    }
}
