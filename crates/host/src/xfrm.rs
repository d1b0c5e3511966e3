//! [`Xfrm`]: the IPsec policies of a host, as `ip xfrm policy` prints them, and which of them is for a packet.
//!
//! Contract: what a policy asks that packets do not tell (a device, a mark, a user) leaves open whether it is for one.
//! Source: ip-xfrm(8); `xfrm_policy_lookup_bytype` in the kernel's `net/xfrm/xfrm_policy.c`.

use std::net::IpAddr;

use crate::Network;
use crate::by_part::ByNetwork;
use crate::text::{Line, Record, TextError, records};

/// The IPsec policies of a host, by direction and family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Xfrm {
    lists: [Policies; 6],
}

/// Policies that one packet may be for, most wanted first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Policies {
    all: Vec<XfrmPolicy>,
    by_destination: ByNetwork,
    /// Some policy asks for something.
    asks: bool,
}

/// Which packets a policy is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XfrmDirection {
    /// Packets to this host.
    In,
    /// Packets that leave it.
    Out,
    /// Received packets that are forwarded.
    Forward,
}

/// What has to be done to the packets of a selector, or what has to have been done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XfrmPolicy {
    source: Network,
    destination: Network,
    protocol: Option<u8>,
    source_port: Option<u16>,
    destination_port: Option<u16>,
    /// Whether the policy asks for something that packets do not show.
    is_narrower: bool,
    direction: XfrmDirection,
    priority: u32,
    /// Whether the policy's packets are dropped.
    pub blocks: bool,
    /// The transforms, in order; none where the policy lets packets pass as they are.
    pub templates: Vec<XfrmTemplate>,
}

/// A transform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XfrmTemplate {
    /// Where its packets come from, in tunnel mode; `None` from anywhere.
    pub source: Option<IpAddr>,
    /// Where they go.
    pub destination: Option<IpAddr>,
    /// ESP, AH or IPComp, by its number; `None` if it is another one.
    pub protocol: Option<u8>,
    /// The number of its association; `None` for any.
    pub spi: Option<u32>,
    /// The number that its associations are asked for by; `None` for any.
    pub reqid: Option<u32>,
    /// Whether its mode is tunnel, or transport; `None` for another one.
    pub tunnel: Option<bool>,
    /// Packets may go without.
    pub is_optional: bool,
}

/// The ends and the protocol of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XfrmFlow {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// The number of its protocol.
    pub protocol: u8,
    /// Source and destination port; `None` where the protocol has none.
    pub ports: Option<(u16, u16)>,
}

impl Xfrm {
    /// Reads them. Those of single sockets are left out.
    ///
    /// # Errors
    /// A record that does not begin with a selector, or says no direction, with its place.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let mut xfrm = Self::default();
        for record in records(text) {
            if let Some(policy) = read(&record)? {
                let place = place(policy.direction, policy.source.addr.is_ipv6());
                xfrm.lists[place].all.push(policy);
            }
        }
        for list in &mut xfrm.lists {
            list.all.sort_by_key(|policy| policy.priority);
            let destinations = list.all.iter().map(|policy| Some(policy.destination));
            list.by_destination = ByNetwork::of_networks(destinations);
            list.asks = list.all.iter().any(|policy| !policy.is_nothing());
        }
        Ok(xfrm)
    }

    /// The policy for a packet: `Some(None)` where there is none that asks for anything, `None` where that is not known, as
    /// where the packet's ends are not.
    #[must_use]
    pub fn find(
        &self,
        direction: XfrmDirection,
        is_v6: bool,
        flow: Option<&XfrmFlow>,
    ) -> Option<Option<&XfrmPolicy>> {
        let list = &self.lists[place(direction, is_v6)];
        if !list.asks {
            return Some(None);
        }
        let flow = flow?;
        let next = |from| list.by_destination.next(from, flow.destination);
        let places = std::iter::successors(next(0), |place| next(place + 1));
        let mut all = places.map(|place| &list.all[place]);
        let found = all.find(|policy| policy.takes(flow) != Some(false));
        let Some(found) = found else { return Some(None) };
        found.takes(flow)?;
        // Which of two at the same priority is asked is not known.
        let mut equals =
            std::iter::once(found).chain(all.take_while(|it| it.priority == found.priority));
        let is_sure =
            equals.all(|policy| policy.does_as(found) || policy.takes(flow) == Some(false));
        is_sure.then_some(Some(found).filter(|policy| !policy.is_nothing()))
    }
}

/// Where the policies of a direction and a family are.
fn place(direction: XfrmDirection, is_v6: bool) -> usize {
    let direction = match direction {
        XfrmDirection::In => 0,
        XfrmDirection::Out => 1,
        XfrmDirection::Forward => 2,
    };
    2 * direction + usize::from(is_v6)
}

impl XfrmPolicy {
    fn is_nothing(&self) -> bool {
        !self.blocks && self.templates.is_empty()
    }

    fn does_as(&self, other: &Self) -> bool {
        self.blocks == other.blocks && self.templates == other.templates && !self.is_narrower
    }

    /// Whether it is for a packet; `None` where that is not known.
    fn takes(&self, flow: &XfrmFlow) -> Option<bool> {
        let is_port = |asked: Option<u16>, port: Option<u16>| match (asked, port) {
            (None, _) => Some(true),
            (Some(asked), Some(port)) => Some(asked == port),
            (Some(_), None) => None,
        };
        let is_other = !self.source.holds(flow.source)
            || !self.destination.holds(flow.destination)
            || self.protocol.is_some_and(|protocol| protocol != flow.protocol);
        let ports = [
            is_port(self.source_port, flow.ports.map(|ports| ports.0)),
            is_port(self.destination_port, flow.ports.map(|ports| ports.1)),
        ];
        match () {
            () if is_other || ports.contains(&Some(false)) => Some(false),
            () if self.is_narrower || ports.contains(&None) => None,
            () => Some(true),
        }
    }
}

/// A policy; `None` if it is that of a socket.
fn read(record: &Record<'_>) -> Result<Option<XfrmPolicy>, TextError> {
    let head = &record.head;
    let network = |name: &str| {
        let word = head.after(name).unwrap_or(head.at(0));
        Network::parse(word.text).ok_or_else(|| word.not("src NETWORK dst NETWORK"))
    };
    let (source, destination) = (network("src")?, network("dst")?);
    let says = |name: &str| record.rest.iter().find_map(|line| line.after(name));
    if record.rest.iter().any(|line| line.has("socket")) {
        return Ok(None);
    }
    let direction = says("dir").unwrap_or(head.at(head.words.len()));
    let direction = match direction.text {
        "in" => XfrmDirection::In,
        "out" => XfrmDirection::Out,
        "fwd" => XfrmDirection::Forward,
        _ => return Err(direction.not("dir in, out or fwd")),
    };
    let port = |name: &str| head.after(name).map(|word| word.text.parse::<u16>());
    let (source_port, destination_port) = (port("sport"), port("dport"));
    let protocol = head.after("proto").map(|word| protocol(word.text));
    let more = ["dev", "type", "code", "key", "uid"];
    let is_masked = [&source_port, &destination_port].into_iter().flatten().any(Result::is_err)
        || head.words.iter().any(|word| word.text.starts_with("0x"));
    let is_narrower = is_masked
        || protocol == Some(None)
        || more.iter().any(|name| head.has(name))
        || ["mark", "if_id"].iter().any(|name| says(name).is_some())
        || says("ptype").is_some_and(|kind| kind.text != "main");
    let templates = record.rest.iter().zip(record.rest.iter().skip(1).map(Some).chain([None]));
    let templates = templates.filter(|(line, _)| line.at(0).text == "tmpl");
    Ok(Some(XfrmPolicy {
        source,
        destination,
        protocol: protocol.flatten(),
        source_port: source_port.and_then(Result::ok),
        destination_port: destination_port.and_then(Result::ok),
        is_narrower,
        direction,
        priority: says("priority").and_then(|word| word.text.parse().ok()).unwrap_or(0),
        blocks: says("action").is_some_and(|action| action.text == "block"),
        templates: templates.map(|(ends, more)| template(ends, more)).collect(),
    }))
}

/// `tmpl src A dst B`, and the line after it: `proto esp spi 0x1 reqid 1 mode tunnel level use`.
fn template(ends: &Line<'_>, more: Option<&Line<'_>>) -> XfrmTemplate {
    let address = |name: &str| {
        let address: Option<IpAddr> = ends.after(name).and_then(|word| word.text.parse().ok());
        address.filter(|address| !address.is_unspecified())
    };
    let word = |name: &str| more.and_then(|line| line.after(name)).map(|word| word.text);
    let number = |name: &str| {
        let digits = word(name)?.split('(').next()?;
        let number = match digits.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => digits.parse().ok()?,
        };
        Some(number).filter(|number| *number != 0)
    };
    XfrmTemplate {
        source: address("src"),
        destination: address("dst"),
        protocol: word("proto").and_then(protocol),
        spi: number("spi"),
        reqid: number("reqid"),
        tunnel: match word("mode") {
            Some("tunnel") => Some(true),
            Some("transport") => Some(false),
            _ => None,
        },
        is_optional: word("level") == Some("use"),
    }
}

/// The number of a protocol that ip(8) prints by name.
fn protocol(name: &str) -> Option<u8> {
    Some(match name {
        "icmp" => 1,
        "tcp" => 6,
        "udp" => 17,
        "gre" => 47,
        "esp" => 50,
        "ah" => 51,
        "ipv6-icmp" => 58,
        "comp" | "ipcomp" => 108,
        "sctp" => 132,
        number => return number.parse().ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As iproute2 6.1 prints them.
    const POLICIES: &str = "\
src 10.0.0.0/24 dst 10.1.0.0/24 proto tcp dport 80 \n\tdir out priority 5 ptype main \n\
\ttmpl src 1.1.1.1 dst 2.2.2.2\n\t\tproto esp spi 0x00000301(769) reqid 7 mode tunnel\n\
src 10.0.0.0/8 dst 10.1.0.0/16 \n\tdir out action block priority 9 ptype main \n\
src 10.9.0.0/16 dst 0.0.0.0/0 dev eth0 \n\tdir out priority 9 ptype main \n\
\ttmpl src 0.0.0.0 dst 0.0.0.0\n\t\tproto ah reqid 0 mode transport\n\
src 0.0.0.0/0 dst 0.0.0.0/0 \n\tsocket in priority 0 ptype main \n";

    fn flow(source: &str, destination: &str, ports: (u16, u16)) -> XfrmFlow {
        let [source, destination] = [source, destination].map(|text| text.parse().unwrap());
        XfrmFlow { source, destination, protocol: 6, ports: Some(ports) }
    }

    #[test]
    fn the_first_policy_of_a_packet_counts() {
        let xfrm = Xfrm::parse(POLICIES).unwrap();
        let out = |flow: &XfrmFlow| xfrm.find(XfrmDirection::Out, false, Some(flow));
        let web = flow("10.0.0.7", "10.1.0.9", (4000, 80));
        let template = &out(&web).unwrap().unwrap().templates[0];
        assert_eq!(
            *template,
            XfrmTemplate {
                source: Some("1.1.1.1".parse().unwrap()),
                destination: Some("2.2.2.2".parse().unwrap()),
                protocol: Some(50),
                spi: Some(0x301),
                reqid: Some(7),
                tunnel: Some(true),
                is_optional: false,
            }
        );
        assert!(out(&flow("10.0.0.7", "10.1.0.9", (4000, 81))).unwrap().unwrap().blocks);
        assert_eq!(out(&flow("10.3.0.7", "10.2.0.9", (4000, 81))), Some(None));
        assert_eq!(out(&flow("10.9.0.7", "10.2.0.9", (4000, 81))), None, "it asks for a device");
        assert_eq!(xfrm.find(XfrmDirection::Out, false, None), None);
        assert_eq!(xfrm.find(XfrmDirection::Out, true, None), Some(None));
        assert_eq!(xfrm.find(XfrmDirection::In, false, None), Some(None), "a socket's own");
    }

    #[test]
    fn what_is_no_policy_is_refused_with_its_place() {
        let error = |text| Xfrm::parse(text).unwrap_err().to_string();
        assert!(error("fw# ip xfrm policy\n").starts_with("1:1: expected src NETWORK"));
        assert!(
            error("src 10.0.0.0/8 dst 0.0.0.0/0\n\tpriority 1\n").contains("dir in, out or fwd")
        );
        assert_eq!(Xfrm::parse(""), Ok(Xfrm::default()));
    }
}
