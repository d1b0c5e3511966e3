//! The kernel's walk over TCP and DCCP options.
//!
//! Kinds 0 and 1 are one byte long, a length of 0 counts as 1, the list does not end at kind 0, and a
//! length byte that lies beyond the list ends it. Source: kernel `net/netfilter/xt_tcpudp.c`,
//! `xt_dccp.c`, `xt_tcpmss.c`, `xt_TCPMSS.c`, `xt_TCPOPTSTRIP.c`, which all walk alike.

/// One option: where it starts in the list, and how many bytes it says it has. It may run past the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionAt {
    pub(crate) at: usize,
    pub(crate) kind: u8,
    pub(crate) len: usize,
}

/// Every option of a list.
pub(crate) fn options(list: &[u8]) -> impl Iterator<Item = OptionAt> + '_ {
    let mut next = 0;
    std::iter::from_fn(move || {
        let at = next;
        let kind = *list.get(at)?;
        let len = match kind {
            0 | 1 => 1,
            _ => usize::from(list.get(at + 1).copied().unwrap_or(1)).max(1),
        };
        next = at + len;
        Some(OptionAt { at, kind, len })
    })
}

/// Whether the list holds an option of this kind.
pub(crate) fn has_option(list: &[u8], kind: u8) -> bool {
    options(list).any(|option| option.kind == kind)
}

/// Where the value of the first well-formed MSS option starts in a list of TCP options, and the value.
pub(crate) fn find_mss(list: &[u8]) -> Option<(usize, u16)> {
    options(list).find_map(|option| match list.get(option.at..)? {
        [2, 4, high, low, ..] => Some((option.at + 2, u16::from_be_bytes([*high, *low]))),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_walked_past_the_end_marker() {
        assert!(has_option(&[2, 4, 5, 0xb4, 1, 3, 3, 7], 3));
        assert!(has_option(&[0, 0, 8, 2], 8));
        assert!(!has_option(&[2, 0, 4], 9));
        assert!(!has_option(&[2, 200, 3], 3));
        assert!(!has_option(&[], 1));
    }

    #[test]
    fn a_length_of_zero_counts_as_one() {
        let walked: Vec<_> = options(&[9, 0, 9, 3, 7]).map(|o| (o.at, o.kind, o.len)).collect();
        assert_eq!(walked, [(0, 9, 1), (1, 0, 1), (2, 9, 3)]);
        assert_eq!(options(&[5]).count(), 1);
    }

    #[test]
    fn an_mss_option_has_four_bytes() {
        assert_eq!(find_mss(&[1, 2, 4, 5, 0xb4]), Some((3, 1460)));
        assert_eq!(find_mss(&[2, 3, 5, 2, 4, 1, 0]), Some((5, 256)));
        assert_eq!(find_mss(&[2, 4, 5]), None);
        assert_eq!(find_mss(&[3, 4, 2, 4, 1, 1, 0, 0]), None);
    }
}
