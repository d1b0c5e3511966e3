//! [`Technique`]: the names that the jar has, in the order of the tables, and what a reader calls them.

/// What everything is compared with.
pub(super) const FLOOR: &str = "floor";

/// A job that techniques do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// The study's: twelve fields read, changed and written.
    Study,
    /// Frames filtered and translated.
    Realistic,
}

/// How long a round takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Up to some hundred nanoseconds a packet.
    Fast,
    /// Half a microsecond and more.
    Slow,
}

/// A way to share packets.
#[derive(Debug)]
pub(super) struct Technique {
    /// As in the jar.
    pub(super) name: &'static str,
    /// In figures.
    pub(super) label: &'static str,
    pub(super) pace: Pace,
    /// Of its JVM, besides those that all have.
    pub(super) options: &'static [&'static str],
}

const fn fast(name: &'static str, label: &'static str) -> Technique {
    Technique { name, label, pace: Pace::Fast, options: &[] }
}

const fn slow(name: &'static str, label: &'static str) -> Technique {
    Technique { name, label, pace: Pace::Slow, options: &[] }
}

impl Technique {
    const fn with(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }
}

const STUDY: [Technique; 29] = [
    fast("floor", "Rust"),
    fast("floor_aligned", "Rust, aligned struct"),
    slow("object_lookup", "object, ids looked up"),
    slow("object_lookup_native", "same, made in native code"),
    slow("object_methods", "object, method ids kept"),
    slow("object_methods_native", "same, made in native code"),
    slow("object_fields", "object, field ids kept"),
    slow("object_fields_native", "same, made in native code"),
    fast("buffer_direct_big_endian", "direct buffer, default order"),
    fast("buffer_direct", "direct buffer, native order"),
    fast("buffer_heap_big_endian", "heap buffer, default order"),
    fast("buffer_heap", "heap buffer, native order"),
    fast("mapped_buffer", "mapped buffer, get and put"),
    fast("mapped_varhandle", "mapped buffer, VarHandle"),
    fast("unsafe_object", "Unsafe into object"),
    fast("unsafe_object_batched", "Unsafe into object, bursts"),
    fast("direct", "direct"),
    fast("direct_batched", "direct, bursts (tamis)"),
    fast("direct_batched_aligned", "direct, bursts, aligned"),
    fast("ffm_direct", "FFM, call per packet"),
    fast("ffm_global", "FFM, all memory"),
    fast("ffm_poll", "FFM, all memory, FFM call"),
    fast("ffm_pool", "FFM, bounded pool"),
    fast("ffm_struct", "FFM, StructLayout"),
    slow("jna_pointer", "JNA, Pointer"),
    slow("jna_structure", "JNA, Structure"),
    fast("javolution_struct", "Javolution, struct per packet"),
    fast("javolution_placed", "Javolution, one struct"),
    fast("swig", "Swig, proxy per packet"),
];

const REALISTIC: [Technique; 11] = [
    fast("floor", "Rust"),
    fast("unsafe", "Unsafe"),
    fast("unsafe_unchecked", "Unsafe, unchecked").with(&["-Dbench.unchecked=true"]),
    fast("mapped", "mapped buffers, VarHandle"),
    fast("upcall", "upcall per burst, Unsafe"),
    fast("ffm_global", "FFM, all memory"),
    fast("ffm_pool", "FFM, bounded pool"),
    fast("ffm_poll", "FFM, all memory, FFM call"),
    fast("tamis", "tamis for Java"),
    fast("tamis_unchecked", "tamis for Java, unchecked").with(&["-Dtamis.unchecked=true"]),
    // As on a JDK before 22.
    fast("tamis_unsafe", "tamis for Java, by Unsafe")
        .with(&["-Djdk.util.jar.enableMultiRelease=false"]),
];

impl Job {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Study, Self::Realistic];

    /// As on the command line, and in names of rows.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Study => "study",
            Self::Realistic => "realistic",
        }
    }

    /// The class of JMH's.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Study => "StudyBenchmark",
            Self::Realistic => "RealisticBenchmark",
        }
    }

    /// What is varied.
    pub(super) fn varies(self) -> &'static str {
        match self {
            Self::Study => "structs",
            Self::Realistic => "burst",
        }
    }

    pub(super) fn techniques(self) -> &'static [Technique] {
        match self {
            Self::Study => &STUDY,
            Self::Realistic => &REALISTIC,
        }
    }

    pub(super) fn technique(self, name: &str) -> Option<&'static Technique> {
        self.techniques().iter().find(|technique| technique.name == name)
    }
}

impl Pace {
    /// Packets of a round; the study's million, unless in a hurry.
    pub(super) fn packets(self, quick: bool) -> u32 {
        match self {
            _ if !quick => 1_000_000,
            Self::Fast => 100_000,
            Self::Slow => 2_000,
        }
    }

    /// Rounds before those that count.
    pub(super) fn warm_up(self) -> usize {
        match self {
            Self::Fast => 20,
            Self::Slow => 2,
        }
    }
}
