//! [`XdpMode`]: who hands frames over to an AF_XDP port. A configuration names it on any system.

/// What runs the program that hands frames to sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpMode {
    /// The driver if it can, else the stack.
    #[default]
    Auto,
    /// The driver, as it receives: before it makes a packet of the kernel's.
    Native,
    /// The stack, on any interface: frames are copied once more.
    Generic,
}
