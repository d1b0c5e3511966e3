//! `reject`: drops the packet, and says what its sender is sent.
//!
//! Source: kernel `net/netfilter/nft_reject_inet.c`, `nft_reject.c` (`nft_reject_icmp_code`).

use crate::stmt;
use crate::types::{ICMP_CODE, ICMPV6_CODE};
use packet::{L4, Read, tcp};
use rules::Transit;
use rules::ext::Answer;
use rules::model::Family;

/// Types of errors that say that something cannot be reached.
const V4: u8 = 3;
const V6: u8 = 1;

/// Codes of `icmpx` in both families: no route, port, host, prohibited.
const SHARED: [(u8, u8); 4] = [(0, 0), (3, 4), (1, 3), (13, 1)];

/// What the sender of a packet of a family is sent; `None` where the kernel has no such answer.
pub(crate) fn answer(reject: &stmt::Reject, family: Family) -> Option<Answer> {
    let six = family == Family::Ipv6;
    let kind = if six { V6 } else { V4 };
    let code = match reject {
        stmt::Reject::Reset => return Some(Answer::Reset),
        stmt::Reject::Usual if six => 4,
        stmt::Reject::Usual => 3,
        stmt::Reject::Code(value) => {
            let number = u8::try_from(value.as_number()?).ok()?;
            if value.ty == &ICMP_CODE || value.ty == &ICMPV6_CODE {
                number
            } else {
                let (v4, v6) = *SHARED.get(usize::from(number))?;
                if six { v6 } else { v4 }
            }
        }
    };
    Some(Answer::Icmp { kind, code })
}

/// Ends the connection of a packet that is answered by a reset. A reset is not answered by one.
pub(crate) fn reset(transit: &mut Transit<'_, '_>) {
    if !is_reset(transit) {
        transit.ct.reset(transit.time.unwrap_or(0), transit.certain);
    }
}

fn is_reset(transit: &Transit<'_, '_>) -> bool {
    let L4::Upper(upper) = transit.packet.headers().l4 else { return false };
    match transit.packet.upper::<1>(&upper, 13) {
        Read::Known([flags]) => tcp::Flags(flags).contains(tcp::Flags::RST),
        Read::Absent | Read::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stmt::Reject;
    use crate::types::{ICMPX_CODE, Value};

    #[test]
    fn codes_of_both_families_are_those_of_each() {
        let code =
            |number, family| answer(&Reject::Code(Value::number(&ICMPX_CODE, number)), family);
        let icmp = |kind, code| Some(Answer::Icmp { kind, code });
        assert_eq!(code(1, Family::Ipv4), icmp(3, 3));
        assert_eq!(code(1, Family::Ipv6), icmp(1, 4));
        assert_eq!(code(3, Family::Ipv4), icmp(3, 13));
        assert_eq!(code(3, Family::Ipv6), icmp(1, 1));
        assert_eq!(code(4, Family::Ipv6), None);
        assert_eq!(answer(&Reject::Usual, Family::Ipv4), icmp(3, 3));
    }
}
