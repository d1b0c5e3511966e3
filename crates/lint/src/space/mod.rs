//! Packets as strings of bits, and sets of them as regions: what predicates hold for, what a hook sees, one packet of a
//! region, and a region in pieces.
//!
//! Every field of [`rules::predicate`] has its bits, and so have the connection's state, the interfaces (as far as rules
//! tell them apart) and the form of the packet. A test that can only be asked is a bit of its own, named by its text:
//! what is not said about packets by a region that holds with and without it depends on nothing unknown.

mod fewer;
mod hook;
mod marks;
mod names;
mod part;
mod parts;
mod pieces;
mod predicates;
mod routing;
mod sample;

pub use part::Part;
pub(crate) use parts::ip;
pub(crate) use pieces::address;
pub use pieces::{Piece, Pieces};
pub use predicates::Space;
pub(crate) use predicates::named_in;
pub(crate) use routing::{inputs, outputs};
pub use sample::{Preferred, Sample};
