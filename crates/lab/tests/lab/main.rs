//! What once differed from the kernel, the studies' engines, the generators and `tamis-bench`: all that needs no root.

mod aimed;
mod bench;
mod cases;
mod claims;
mod conversations;
mod corpora;
mod documents;
mod engines;
mod figures;
mod layouts;
mod registry;
mod unknown;
