//! [`Authority`]: enrols devices by one-time keys, signs what each is, for hours, and revokes them. It alone has the signer's
//! key.
//!
//! Contract: as that of a [`Directory`](crate::Directory): no sockets and no clock, and [`Effect::Keep`](crate::Effect::Keep) has to
//! be on disk before any other effect of the same call is carried out. It knows nothing of who is there and who may reach whom. A
//! directory hears of each device that is enrolled or revoked: in the same process by [`Effect::Tell`](crate::Effect::Tell), elsewhere by
//! orders. All state is bounded by the devices that were enrolled.

mod apart;
mod directory;
mod enrolment;
mod renewal;
mod state;

pub use state::Authority;
