//! Why a peer is reached the way it is, in words: directly, through the relay, or not at all; and which step failed.
//!
//! Contract: what nobody has seen of a router is said to be unknown.

use live::answers::{Direct, Peer, Router};

/// What is known of the way from a node to its peer: how it is reached, what the two routers do, and why there is no better
/// way.
pub(super) fn lines(peer: &Peer, [own, other]: [&str; 2]) -> Vec<String> {
    let mut lines = vec![path(peer, other)];
    let Some(direct) = &peer.direct else { return lines };
    let routers = [(own, &direct.own), (other, &direct.peer)];
    lines.extend(routers.iter().map(|(name, it)| format!("{name}'s router {}", does(it.as_ref()))));
    if peer.path.as_deref() == Some("relay") && peer.handshake_s.is_some() {
        lines.push(format!("not directly: {}", reason(direct, [own, other])));
    }
    lines
}

/// How a peer is reached.
fn path(peer: &Peer, other: &str) -> String {
    let endpoint = peer.endpoint.as_deref().unwrap_or("a place that is not known");
    let is_tcp = endpoint.starts_with("127.") || endpoint.starts_with("[::1]");
    let heard = match peer.heard_s {
        Some(ago) => format!("{other} was heard {ago:.0} s ago"),
        None => format!("{other} has never been heard"),
    };
    match (peer.path.as_deref(), peer.handshake_s) {
        (_, None) => format!(
            "down: no handshake by {endpoint}: {other}, the relay, or the way to it does not answer; {heard}"
        ),
        (Some("direct"), _) => format!("direct: {endpoint}; {heard}"),
        (_, Some(_)) if is_tcp => {
            format!("by the relay, through TCP: no UDP reaches the servers from here; {heard}")
        }
        (_, Some(_)) => format!("by the relay: {endpoint}; {heard}"),
    }
}

/// What a router does.
fn does(router: Option<&Router>) -> String {
    let Some(router) = router else {
        return "is not known: the directory has begun no attempt to do without the relay"
            .to_owned();
    };
    let ports = match (router.ports.as_str(), router.step) {
        ("one", _) => {
            "gives one port for all ports of the directory's host, or there is none".to_owned()
        }
        ("step", Some(step)) => {
            format!("gives each destination another port: the last one and {step}")
        }
        ("each", _) => "gives each destination another port, which nobody can guess".to_owned(),
        _ => {
            return "is not known: no probe of UDP came through it to the relay's other ports"
                .to_owned();
        }
    };
    match router.strangers.as_str() {
        "taken" => format!(
            "{ports}; it takes what comes too early for its own, and then gives another port for who sent that"
        ),
        "pass" => format!("{ports}; what comes too early leaves no trace in it"),
        _ => ports,
    }
}

/// Why a peer is reached by the relay alone.
fn reason(direct: &Direct, [own, other]: [&str; 2]) -> String {
    if direct.attempts == 0 {
        return "the directory has begun no attempt yet; it does once both nodes have said that they are ready".to_owned();
    }
    let tried = match direct.attempts {
        1 => format!("one attempt at {} places", direct.places),
        count => format!("{count} attempts, the last at {} places", direct.places),
    };
    if direct.trying {
        return format!("{tried}; one is under way, or waits for its time");
    }
    if direct.given_up > 0 {
        return format!(
            "{tried}; a direct path was there, and its probes were lost ({} times)",
            direct.given_up
        );
    }
    let ports = [&direct.own, &direct.peer].map(|it| it.as_ref().map_or("unknown", |it| &it.ports));
    let is_taken = |it: &Option<Router>| it.as_ref().is_some_and(|it| it.strangers == "taken");
    let what = match ports {
        ["unknown", _] | [_, "unknown"] => "no answer; a router is not known".to_owned(),
        ["each" | "step", "each" | "step"] => {
            "both routers give another port for the other node, so neither node can send to it".to_owned()
        }
        ["each", _] => wants_cone([own, other]),
        [_, "each"] => wants_cone([other, own]),
        ["step", _] | [_, "step"] => {
            "the next ports were guessed, and none was it: others behind that router use it, too".to_owned()
        }
        _ if is_taken(&direct.own) && is_taken(&direct.peer) => {
            "both routers take what comes too early for their own, and one was first".to_owned()
        }
        _ => "no answer, though both ports are known: UDP between the two is filtered, or a router gives each host another port".to_owned(),
    };
    format!("{tried}: {what}")
}

fn wants_cone([each, other]: [&str; 2]) -> String {
    format!(
        "{other} cannot know the port that {each}'s router gives for it, and its own router lets in nothing else"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(path: &str, attempts: u32, ports: [&str; 2], strangers: [&str; 2]) -> Peer {
        let router = |side: usize| Router {
            ports: ports[side].to_owned(),
            step: (ports[side] == "step").then_some(2),
            strangers: strangers[side].to_owned(),
        };
        let (own, other) = (Some(router(0)), Some(router(1)));
        let direct = Direct { attempts, places: 2, own, peer: other, ..Direct::default() };
        Peer {
            path: Some(path.to_owned()),
            endpoint: Some("203.0.113.1:52000".to_owned()),
            handshake_s: Some(1.0),
            heard_s: Some(2.2),
            direct: Some(direct),
            ..Peer::default()
        }
    }

    fn last(peer: &Peer) -> String {
        lines(peer, ["laptop", "nas"]).pop().unwrap_or_default()
    }

    #[test]
    fn each_pair_of_routers_has_its_reason() {
        let none = ["unknown"; 2];
        let said = |ports, strangers| last(&peer("relay", 3, ports, strangers));
        for (ports, strangers, part) in [
            (["one", "each"], none, "laptop cannot know the port that nas's router gives"),
            (["each", "one"], none, "nas cannot know the port that laptop's router gives"),
            (["each", "step"], none, "both routers give another port"),
            (["one", "step"], none, "the next ports were guessed"),
            (["one", "one"], ["taken"; 2], "both routers take what comes too early"),
            (["one", "one"], ["pass", "taken"], "UDP between the two is filtered"),
            (["unknown", "one"], none, "a router is not known"),
        ] {
            let text = said(ports, strangers);
            assert!(text.starts_with("not directly: 3 attempts, the last at 2 places: "), "{text}");
            assert!(text.contains(part), "{ports:?}: {text}");
        }
        assert!(last(&peer("relay", 0, ["one"; 2], none)).contains("has begun no attempt yet"));
    }

    #[test]
    fn a_direct_path_needs_no_reason_and_a_path_that_is_down_names_the_step() {
        let direct = peer("direct", 1, ["one"; 2], ["pass"; 2]);
        let text = lines(&direct, ["laptop", "nas"]);
        assert_eq!(text.len(), 3);
        assert_eq!(text[0], "direct: 203.0.113.1:52000; nas was heard 2 s ago");
        assert!(text[2].starts_with("nas's router gives one port"), "{text:?}");
        let down = Peer { handshake_s: None, heard_s: None, ..direct };
        let text = lines(&down, ["laptop", "nas"]);
        assert!(text[0].starts_with("down: no handshake by 203.0.113.1:52000"), "{text:?}");
        assert!(text[0].ends_with("nas has never been heard"));
    }
}
