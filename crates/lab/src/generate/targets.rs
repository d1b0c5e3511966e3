//! Draws what a rule does when it matches. One function per target that has options.

use rules::ext::{Families, IP, Support, V4, V6, find_target};

use super::{Draw, Piece};

/// How to draw one target.
#[derive(Debug)]
pub struct TargetGen {
    /// Name after `-j`.
    pub name: &'static str,
    /// Families that have it.
    pub families: Families,
    /// The table it is confined to, if it is.
    pub table: Option<&'static str>,
    /// Draws its options.
    pub draw: fn(&mut Draw) -> Piece,
}

/// Every generator.
pub static GENERATORS: &[TargetGen] = &[
    TargetGen { name: "DSCP", families: IP, table: Some("mangle"), draw: dscp },
    TargetGen { name: "ECN", families: V4, table: Some("mangle"), draw: ecn },
    TargetGen { name: "HL", families: V6, table: Some("mangle"), draw: hl },
    TargetGen { name: "LOG", families: IP, table: None, draw: log },
    TargetGen { name: "MARK", families: IP, table: None, draw: mark },
    TargetGen { name: "NFLOG", families: IP, table: None, draw: nflog },
    TargetGen { name: "REJECT", families: V4, table: Some("filter"), draw: reject_v4 },
    TargetGen { name: "REJECT", families: V6, table: Some("filter"), draw: reject_v6 },
    TargetGen { name: "TOS", families: IP, table: Some("mangle"), draw: tos },
    TargetGen { name: "TTL", families: V4, table: Some("mangle"), draw: ttl },
];

/// Evaluated targets that the oracle does not ask the kernel about, and why.
pub static SILENT: &[(&str, &str)] = &[];

/// An action: a verdict, a target, or nothing.
pub(super) fn draw(draw: &mut Draw) -> Piece {
    match draw.rng.u8(..20) {
        0..=3 => Piece::plain("-j ACCEPT"),
        4..=6 => Piece::plain("-j DROP"),
        7..=9 => Piece::plain("-j RETURN"),
        10..=13 => Piece::plain(""),
        _ => target(draw),
    }
}

fn target(draw: &mut Draw) -> Piece {
    let may = |kind: &&TargetGen| {
        kind.families.contains(&draw.scene.family)
            && kind.table.is_none_or(|table| table == draw.table)
            && find_target(kind.name, draw.scene.family)
                .is_some_and(|known| known.support == Support::Evaluated)
    };
    let protocol = draw.protocol;
    let fits = |kind: &&TargetGen| kind.name != "ECN" || protocol == Some(6);
    let list: Vec<&TargetGen> = GENERATORS.iter().filter(may).filter(fits).collect();
    let kind = draw.pick(&list);
    let Piece { text, craft } = (kind.draw)(draw);
    Piece { text: format!("-j {} {text}", kind.name).trim_end().into(), craft }
}

fn log(draw: &mut Draw) -> Piece {
    Piece::plain(draw.pick(&["", "--log-prefix \"a b \"", "--log-level 7 --log-ip-options"]))
}

fn nflog(draw: &mut Draw) -> Piece {
    Piece::plain(draw.pick(&["--nflog-group 9", "--nflog-group 9 --nflog-prefix x"]))
}

fn mark(draw: &mut Draw) -> Piece {
    let (value, mask) = (draw.word(), draw.word());
    Piece::plain(match draw.rng.u8(..6) {
        0 => format!("--set-mark {value:#x}"),
        1 => format!("--set-mark {value:#x}/{mask:#x}"),
        2 => format!("--and-mark {value:#x}"),
        3 => format!("--or-mark {value:#x}"),
        4 => format!("--xor-mark {value:#x}"),
        _ => format!("--set-xmark {value:#x}/{mask:#x}"),
    })
}

fn reject_v4(draw: &mut Draw) -> Piece {
    let mut kinds = vec!["", "--reject-with icmp-host-unreachable"];
    if draw.protocol == Some(6) {
        kinds.push("--reject-with tcp-reset");
    }
    Piece::plain(draw.pick(&kinds))
}

fn reject_v6(draw: &mut Draw) -> Piece {
    let mut kinds = vec!["", "--reject-with icmp6-adm-prohibited"];
    if draw.protocol == Some(6) {
        kinds.push("--reject-with tcp-reset");
    }
    Piece::plain(draw.pick(&kinds))
}

fn dscp(draw: &mut Draw) -> Piece {
    Piece::plain(format!("--set-dscp {:#x}", draw.pick(&[0, 1, 10, 46, 63])))
}

fn ecn(_: &mut Draw) -> Piece {
    Piece::plain("--ecn-tcp-remove")
}

fn hops(draw: &mut Draw, name: &str) -> Piece {
    let how = draw.pick(&["set", "inc", "dec"]);
    let value = draw.pick(&[1, 2, 63, 64, 200, 255]);
    Piece::plain(format!("--{name}-{how} {value}"))
}

fn ttl(draw: &mut Draw) -> Piece {
    hops(draw, "ttl")
}

fn hl(draw: &mut Draw) -> Piece {
    hops(draw, "hl")
}

fn tos(draw: &mut Draw) -> Piece {
    let (value, mask) = (draw.byte(), draw.byte());
    Piece::plain(match draw.rng.u8(..4) {
        0 => format!("--set-tos {value:#x}"),
        1 => format!("--set-tos {value:#x}/{mask:#x}"),
        2 => format!("--and-tos {value:#x}"),
        _ => format!("--or-tos {value:#x}"),
    })
}
