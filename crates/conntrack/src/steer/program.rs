//! [`Key::program`]: the same decision as a classic BPF program, for a kernel that shares frames out.
//!
//! Contract: for unfragmented TCP and UDP over IPv4, and over IPv6 without extension headers, it says what
//! [`Key::shard_of`] says before the remainder, which the kernel takes; by addresses, for fragments and other protocols,
//! too. Anything else (packets that the stack refuses, ICMP errors, tags that are still in the frame, ports that count as
//! one) it may say wrong: who receives such a packet hands it to its owner. It reads from the network header on,
//! wherever that lies.
//!
//! Source: `Documentation/networking/filter.rst`, `linux/filter.h` (`SKF_NET_OFF`, `SKF_AD_PROTOCOL`).

use super::key::{ABOVE_PORTS, Key, ODD, SHIFT};

/// `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub code: u16,
    /// Instructions skipped if a test holds, and if not.
    pub jumps: [u8; 2],
    /// The operand (`k`).
    pub operand: u32,
}

// Codes.
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF_AT_X: u16 = 0x48;
const LOAD_X_HEADER: u16 = 0xb1;
const LOAD_KEPT: u16 = 0x60;
const LOAD_X_KEPT: u16 = 0x61;
const KEEP: u16 = 0x02;
const COPY_TO_X: u16 = 0x07;
const ADD_X: u16 = 0x0c;
const MULTIPLY: u16 = 0x24;
const SHIFT_LEFT: u16 = 0x64;
const SHIFT_RIGHT: u16 = 0x74;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
const RETURN_SUM: u16 = 0x16;

/// Offsets from here on count from the network header.
const NETWORK: u32 = (-0x10_0000_i32) as u32;
/// The EtherType.
const ETHERTYPE: u32 = (-0x1000_i32) as u32;

const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const TCP: u32 = 6;
const UDP: u32 = 17;
/// Fragment offset and the bit that says that more follow.
const FRAGMENT: u32 = 0x3fff;

const fn plain(code: u16, operand: u32) -> Instruction {
    Instruction { code, jumps: [0; 2], operand }
}

/// Continues with the next instruction if the test holds, and otherwise skips `further` instructions.
const fn only_if(code: u16, operand: u32, further: usize) -> Instruction {
    Instruction { code, jumps: [0, further as u8], operand }
}

impl Key {
    /// The program: what it returns is the shard, but for the remainder by their number.
    #[must_use]
    pub fn program(&self) -> Vec<Instruction> {
        let [v4, v6] = match self {
            Self::Addresses => [addresses(12, 2), addresses(8, 8)],
            Self::Ports(_) => [ports_v4(), ports_v6()],
        };
        let of = |ethertype, body: Vec<Instruction>| {
            [vec![only_if(IF_EQUAL, ethertype, body.len())], body].concat()
        };
        let first = vec![plain(RETURN, 0)];
        [vec![plain(LOAD_WORD, ETHERTYPE)], of(IPV4, v4), of(IPV6, v6), first].concat()
    }
}

/// The end: what was added up, spread.
fn spread() -> [Instruction; 3] {
    [plain(MULTIPLY, ODD), plain(SHIFT_RIGHT, SHIFT), plain(RETURN_SUM, 0)]
}

/// Adds up `words` words of the network header, from offset `at` on.
fn addresses(at: u32, words: u32) -> Vec<Instruction> {
    let mut body = vec![plain(LOAD_WORD, NETWORK + at)];
    for word in 1..words {
        body.extend([
            plain(COPY_TO_X, 0),
            plain(LOAD_WORD, NETWORK + at + 4 * word),
            plain(ADD_X, 0),
        ]);
    }
    body.extend(spread());
    body
}

fn ports_v4() -> Vec<Instruction> {
    let ports = [
        plain(LOAD_X_HEADER, NETWORK),
        plain(LOAD_HALF_AT_X, NETWORK),
        plain(KEEP, 1),
        plain(LOAD_HALF_AT_X, NETWORK + 2),
    ];
    let whole = [
        plain(LOAD_HALF, NETWORK + 6),
        Instruction { code: IF_ANY_BIT, jumps: [0, 1], operand: FRAGMENT },
        plain(RETURN, 0),
    ];
    [&whole[..], &with_ports(NETWORK + 9, &ports)].concat()
}

fn ports_v6() -> Vec<Instruction> {
    let ports = [plain(LOAD_HALF, NETWORK + 40), plain(KEEP, 1), plain(LOAD_HALF, NETWORK + 42)];
    with_ports(NETWORK + 6, &ports)
}

/// Adds up two ports, the kept and the loaded one, for TCP and UDP, whose number is at `protocol`.
fn with_ports(protocol: u32, ports: &[Instruction]) -> Vec<Instruction> {
    let is_either = [
        plain(LOAD_BYTE, protocol),
        plain(KEEP, 0),
        Instruction { code: IF_EQUAL, jumps: [2, 0], operand: TCP },
        Instruction { code: IF_EQUAL, jumps: [1, 0], operand: UDP },
        plain(RETURN, 0),
    ];
    let added = [
        plain(LOAD_X_KEPT, 1),
        plain(ADD_X, 0),
        plain(COPY_TO_X, 0),
        plain(LOAD_KEPT, 0),
        plain(SHIFT_LEFT, ABOVE_PORTS),
        plain(ADD_X, 0),
    ];
    [&is_either[..], ports, &added, &spread()].concat()
}

#[cfg(test)]
mod tests {
    use super::super::Alike;
    use super::*;
    use packet::craft::{Addresses, Craft, Fragment, Message};
    use packet::tcp::Flags;
    use packet::{Checksums, L3, L4, Link, Packet};
    use proptest::prelude::*;
    use std::net::IpAddr;

    /// What a kernel would return: one instruction after the other. What lies beyond the packet ends it with 0.
    fn run(program: &[Instruction], packet: &[u8], ethertype: u32) -> u32 {
        let (mut a, mut x, mut kept, mut at) = (0_u32, 0_u32, [0_u32; 2], 0);
        let load = |offset: u32, len: usize| -> Option<u32> {
            if offset == ETHERTYPE {
                return Some(ethertype);
            }
            let start = offset.wrapping_sub(NETWORK) as usize;
            let bytes = packet.get(start..start + len)?;
            Some(bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)))
        };
        loop {
            let Instruction { code, jumps, operand } = program[at];
            at += 1;
            let mut test = |holds: bool| at += usize::from(jumps[usize::from(!holds)]);
            let loaded = match code {
                LOAD_WORD => load(operand, 4),
                LOAD_HALF => load(operand, 2),
                LOAD_BYTE | LOAD_X_HEADER => load(operand, 1),
                LOAD_HALF_AT_X => load(operand.wrapping_add(x), 2),
                _ => Some(a),
            };
            let Some(loaded) = loaded else { return 0 };
            match code {
                LOAD_X_HEADER => x = (loaded & 0xf) * 4,
                LOAD_KEPT => a = kept[operand as usize],
                LOAD_X_KEPT => x = kept[operand as usize],
                KEEP => kept[operand as usize] = a,
                COPY_TO_X => x = a,
                ADD_X => a = a.wrapping_add(x),
                MULTIPLY => a = a.wrapping_mul(operand),
                SHIFT_LEFT => a <<= operand,
                SHIFT_RIGHT => a >>= operand,
                IF_EQUAL => test(a == operand),
                IF_ANY_BIT => test(a & operand != 0),
                RETURN => return operand,
                RETURN_SUM => return a,
                _ => a = loaded,
            }
        }
    }

    fn addresses_of_one_family() -> impl Strategy<Value = [IpAddr; 2]> {
        prop_oneof![
            any::<[[u8; 4]; 2]>().prop_map(|two| two.map(IpAddr::from)),
            any::<[[u8; 16]; 2]>().prop_map(|two| two.map(IpAddr::from)),
        ]
    }

    proptest! {
        #[test]
        fn the_program_says_what_the_key_says(
            [from, to] in addresses_of_one_family(), ports in any::<[u16; 2]>(), is_tcp in any::<bool>(),
            options in 0_usize..3, fragment in prop::option::of(0_u16..3), shards in 1_usize..9,
        ) {
            let message = match is_tcp {
                true => Message::tcp(ports[0], ports[1], Flags::SYN),
                false => Message::udp(ports[0], ports[1]),
            };
            let addresses = Addresses::new(from, to).expect("one family");
            let craft = Craft { payload_len: 32, ..Craft::new(addresses, message) };
            let fragment = fragment.map(|offset| Fragment { offset: 8 * offset, more: true });
            let mut frame = Craft { fragment, ..craft }.frame();
            if from.is_ipv4() {
                // No-operations between the addresses and what follows.
                frame[14] += options as u8;
                let more = vec![1; 4 * options];
                frame.splice(34..34, more);
                let len = (frame.len() - 14) as u16;
                frame[16..18].copy_from_slice(&len.to_be_bytes());
            }
            let len = frame.len();
            let ethertype = if from.is_ipv4() { IPV4 } else { IPV6 };
            for key in [Key::Addresses, Key::Ports(Alike::default())] {
                if fragment.is_some() && key != Key::Addresses {
                    prop_assert_eq!(run(&key.program(), &frame[14..], ethertype), 0);
                    continue;
                }
                let told = run(&key.program(), &frame[14..], ethertype) as usize % shards;
                let packet = Packet::parse(&mut frame, len, Link::Ethernet, Checksums::Ignore);
                // A later fragment has no tuple: steering looks up the tuple of its packet. A packet that the stack
                // refuses, as from a multicast address, has no tuple and no owner.
                let is_refused = matches!(packet.headers().l3, L3::Fault(_));
                if is_refused || matches!(packet.headers().l4, L4::Fragment { .. }) {
                    continue;
                }
                prop_assert_eq!(told, key.shard(&packet, shards), "{:?}", key);
            }
            prop_assert_eq!(run(&Key::Addresses.program(), &frame[14..], 0x0806), 0);
        }
    }
}
