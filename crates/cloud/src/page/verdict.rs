//! [`Verdict`]: whether one node may begin something with another one, and by which lines of the policy, or why not.
//!
//! Contract: the policy itself decides, as it does for nodes; here are the words for it.

use overlay::{Name, Permit, Policy, Protocol, Service};

use super::http::Form;
use crate::overview::{Node, State};

/// The answer to a form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) may: bool,
    /// The answer in a sentence.
    pub(super) answer: String,
    /// What it rests on, and what else stands in the way.
    pub(super) because: Vec<String>,
}

impl Verdict {
    /// Answers a form.
    ///
    /// # Errors
    /// What was expected in a field.
    pub(super) fn of(policy: &Policy, nodes: &[Node], form: &Form) -> Result<Self, String> {
        let from = name(&form.from, "From")?;
        let to = name(&form.to, "To")?;
        let service = service(&form.port)?;
        if from == to {
            return Err(format!("expected two nodes: what {from} begins with itself stays there"));
        }
        let permits = policy.permits(&from, &to);
        let by = permits.by(false, service.protocol, service.ports.0);
        let version = policy.version;
        let (answer, mut because) = match by {
            Some(line) => (
                format!("Yes: {from} may begin {service} with {to}."),
                vec![format!("Line of the policy, version {version}: {}", line.text)],
            ),
            None => {
                let answer = format!("No: {from} may not begin {service} with {to}.");
                (answer, denied(&permits.lines, [&from, &to], service, version))
            }
        };
        because.extend([&from, &to].into_iter().filter_map(|name| missing(name, nodes)));
        Ok(Self { may: by.is_some(), answer, because })
    }
}

fn name(text: &str, field: &str) -> Result<Name, String> {
    text.to_ascii_lowercase().parse().map_err(|_| format!("{field}: expected the name of a node"))
}

fn service(text: &str) -> Result<Service, String> {
    let one = |it: &Service| it.protocol == Protocol::Icmp || it.ports.0 == it.ports.1;
    let service = text.to_ascii_lowercase().parse().ok().filter(one);
    service.ok_or_else(|| "Port: expected one port, such as tcp/22 or udp/53, or icmp".to_owned())
}

/// Why nothing lets it begin: the lines about the two, and what each lets begin.
fn denied(lines: &[Permit], [from, to]: [&Name; 2], service: Service, version: u64) -> Vec<String> {
    if lines.is_empty() {
        return vec![format!(
            "No line of the policy, version {version}, is about {from} and {to}: neither resolves the other's name, and what no \
             line allows is denied."
        )];
    }
    let line = |line: &Permit| match line.outward {
        true => format!("Not by its ports, which are not {service}: {}", line.text),
        false => format!("Not by its direction, as {to} alone may begin it: {}", line.text),
    };
    let mut because = vec![format!(
        "What no line allows is denied. The lines of the policy, version {version}, about the two:"
    )];
    because.extend(lines.iter().map(line));
    because
}

/// Why a node is not reached, whatever the policy says.
fn missing(name: &Name, nodes: &[Node]) -> Option<String> {
    let node = nodes.iter().find(|node| node.name == name.as_str());
    match node.map(|node| node.state) {
        Some(State::Present) => None,
        Some(State::Absent) => Some(format!("{name} is not there now, so there is no way to it.")),
        Some(State::Revoked) => Some(format!("{name} is revoked, so there is no way to it.")),
        None => Some(format!("No node has the name {name} on this page.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Written;

    const TEXT: &str = "[groups]\nmobile = [\"laptop\", \"phone\"]\n[[allow]]\nfrom = [\"mobile\"]\n\
        to = [\"nas\"]\nports = [\"tcp/22\", \"icmp\"]\n[[allow]]\nbetween = [\"nas\", \"backup\"]\n";

    fn ask(from: &str, to: &str, port: &str) -> Result<Verdict, String> {
        let policy = Policy { version: 7, ..Written::read(TEXT).unwrap().policy };
        let node = |name: &str, state| {
            let name = name.to_owned();
            Node { name, state, ..Node::default() }
        };
        let nodes = [
            node("laptop", State::Present),
            node("nas", State::Present),
            node("phone", State::Revoked),
            node("backup", State::Absent),
        ];
        let [from, to, port] = [from, to, port].map(str::to_owned);
        Verdict::of(&policy, &nodes, &Form { from, to, port })
    }

    #[test]
    fn what_a_line_lets_begin_is_said_with_the_line() {
        let verdict = ask("Laptop", "nas", "TCP/22").unwrap();
        assert_eq!(verdict.answer, "Yes: laptop may begin tcp/22 with nas.");
        let because = ["Line of the policy, version 7: mobile -> nas tcp/22 icmp"];
        assert!(verdict.may && verdict.because == because);
        let verdict = ask("nas", "backup", "udp/9").unwrap();
        assert!(verdict.may);
        assert_eq!(verdict.because[1], "backup is not there now, so there is no way to it.");
    }

    #[test]
    fn what_no_line_lets_begin_is_said_with_the_lines_about_the_two() {
        let verdict = ask("laptop", "nas", "tcp/23").unwrap();
        assert_eq!(verdict.answer, "No: laptop may not begin tcp/23 with nas.");
        let line = "Not by its ports, which are not tcp/23: mobile -> nas tcp/22 icmp";
        assert!(!verdict.may && verdict.because[1] == line, "{verdict:?}");
        let verdict = ask("nas", "phone", "tcp/22").unwrap();
        let line = "Not by its direction, as phone alone may begin it: mobile -> nas tcp/22 icmp";
        assert_eq!(verdict.because[1], line);
        assert_eq!(verdict.because[2], "phone is revoked, so there is no way to it.");
        let verdict = ask("laptop", "backup", "icmp").unwrap();
        assert!(verdict.because[0].starts_with("No line of the policy, version 7, is about"));
        let verdict = ask("tv", "nas", "icmp").unwrap();
        assert_eq!(verdict.because[1], "No node has the name tv on this page.");
    }

    #[test]
    fn what_is_no_question_is_refused() {
        assert!(ask("", "nas", "tcp/22").unwrap_err().starts_with("From: expected"));
        assert!(ask("laptop", "<b>", "tcp/22").unwrap_err().starts_with("To: expected"));
        for port in ["", "tcp", "tcp/1-2", "22", "gre", "tcp/99999"] {
            assert!(ask("laptop", "nas", port).unwrap_err().starts_with("Port: expected"));
        }
        assert!(ask("nas", "nas", "tcp/22").unwrap_err().starts_with("expected two nodes"));
    }

    /// The policy's own judgement, pair by pair and port by port, is what the page says.
    #[test]
    fn the_page_says_what_the_policy_says() {
        let policy = Written::read(TEXT).unwrap().policy;
        let names = ["laptop", "phone", "nas", "backup", "tv"];
        for (from, to) in names.into_iter().flat_map(|from| names.map(|to| (from, to))) {
            for port in ["tcp/22", "tcp/23", "udp/22", "icmp"] {
                let service: Service = port.parse().unwrap();
                let (one, other) = (from.parse().unwrap(), to.parse().unwrap());
                let lets = policy.lets(&one, &other, service.protocol, service.ports.0);
                if from != to {
                    assert_eq!(ask(from, to, port).unwrap().may, lets, "{from} {to} {port}");
                }
            }
        }
    }
}
