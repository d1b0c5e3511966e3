//! The colours of series: of Okabe and Ito, told apart by all eyes. A name has one colour in every figure, ours its own.

use plotters::style::RGBColor;

pub(super) const INK: RGBColor = RGBColor(40, 40, 48);
pub(super) const FAINT: RGBColor = RGBColor(222, 222, 228);
const BLACK: RGBColor = RGBColor(0, 0, 0);
const BLUE: RGBColor = RGBColor(0, 114, 178);
const SKY: RGBColor = RGBColor(86, 180, 233);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const PURPLE: RGBColor = RGBColor(204, 121, 167);
const ORANGE: RGBColor = RGBColor(230, 159, 0);
const YELLOW: RGBColor = RGBColor(196, 186, 36);
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const GREY: RGBColor = RGBColor(130, 130, 130);

/// Engines and layouts by name, ours in one colour; no panel holds two of one.
const COLOURS: [(&str, RGBColor); 42] = [
    ("tamis", VERMILION),
    ("serial", BLACK),
    ("coarse", BLACK),
    ("fine", BLUE),
    ("matrix", BLUE),
    ("striped", SKY),
    ("concurrent_map", SKY),
    ("optimistic", GREEN),
    ("striped_map", GREEN),
    ("split_ordered", PURPLE),
    ("hopscotch", GREY),
    ("cached_exact", ORANGE),
    ("cached_epoch", YELLOW),
    ("streams", BLUE),
    ("one worker", BLUE),
    ("8 workers", ORANGE),
    ("threads", ORANGE),
    ("table_blob", BLACK),
    ("indexed_blob", BLUE),
    ("linked", SKY),
    ("scattered", PURPLE),
    ("whole", YELLOW),
    ("pooled", GREEN),
    ("packed_chain", VERMILION),
    ("revision", ORANGE),
    ("ip6tables-legacy", BLACK),
    ("ip6tables-nft", BLUE),
    ("nft", SKY),
    ("conventional", BLACK),
    ("mutex", BLUE),
    ("wireguard-go", GREEN),
    ("boringtun-cli", PURPLE),
    ("gotatun", SKY),
    ("veth", YELLOW),
    ("floor", BLACK),
    ("buffer_direct", SKY),
    ("mapped_varhandle", GREEN),
    ("unsafe_object", BLUE),
    ("direct", ORANGE),
    ("direct_batched", VERMILION),
    ("ffm_global", PURPLE),
    ("published", GREY),
];

/// The colour of a name; grey for one that has none.
pub(super) fn colour(name: &str) -> RGBColor {
    COLOURS.iter().find(|(known, _)| *known == name).map_or(GREY, |(_, colour)| *colour)
}

/// The width of a name's line: ours is the widest.
pub(super) fn width(name: &str) -> u32 {
    if name == "tamis" { 3 } else { 2 }
}
