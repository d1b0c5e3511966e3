//! Capture files through the reader: built by hand from the formats' descriptions, cut, damaged,
//! compressed, and written by this crate's own writers.

mod classic;
mod compressed;
mod cut;
mod hostile;
mod made;
mod ng;
mod written;
