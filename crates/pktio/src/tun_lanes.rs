//! [`TunLanes`]: how the frames of one TUN port wait in the kernel: in several queues instead of one.

/// The lanes of a port, and the program by which the kernel chooses a frame's.
///
/// A frame waits for frames of its own lane alone. The frames of a lane keep their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunLanes {
    /// How many there are.
    pub count: u16,
    /// Instructions of eBPF, each as `bpf_instruction` makes it: a program of the kind `BPF_PROG_TYPE_SOCKET_FILTER`, which
    /// is asked for each frame, and whose result, divided by the number of lanes, leaves the lane as remainder.
    pub program: Vec<u64>,
}
