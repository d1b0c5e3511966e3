//! The drivers of study 1 by the names that it gives them, `<Firewall><Strategy>Driver`, and what its authors measured of
//! each.
//!
//! Source: the raw data beside the study's code (`bench_persisted/results_193285383091666__10m.json` of vic-lsh/polywall on
//! GitHub), cut to three decimals; the study's text has some of them to two, cut or rounded, which a test compares.

use engines::catalogue::Kind;

/// A firewall under one way to share work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Driver {
    /// The engine that stands for the firewall here.
    pub engine: Kind,
    /// The way to share work, by its name here.
    pub model: &'static str,
    /// Times the serial firewall, by [`THREADS`], presets 1 to 8.
    pub speed_ups: [[f64; 8]; 3],
}

/// Threads that the authors ran.
pub const THREADS: [usize; 3] = [3, 6, 10];

/// The serial driver, the seventeenth.
const SERIAL: &str = "SerialFirewallDriver";

const FIREWALLS: [(Kind, &str); 4] = [
    (Kind::Coarse, "Coarse"),
    (Kind::Striped, "StripedLock"),
    (Kind::Fine, "FineGrained"),
    (Kind::Optimistic, "NonBlocking"),
];

const STRATEGIES: [(&str, &str); 4] = [
    ("task_pool", "TaskPool"),
    ("worker_pool", "WorkerPool"),
    ("partial_pipeline", "PartialPipeline"),
    ("phased_pipeline", "PhasedPipeline"),
];

/// All that share work: 10 million packets on a 10-core M1 Pro.
#[rustfmt::skip]
pub const DRIVERS: [Driver; 16] = [
    Driver {
        engine: Kind::Coarse,
        model: "task_pool",
        speed_ups: [
            [1.073, 1.360, 1.125, 1.343, 1.623, 1.598, 1.608, 1.509],
            [1.216, 1.489, 1.125, 1.291, 1.672, 1.542, 1.599, 1.674],
            [1.137, 1.405, 1.125, 1.402, 1.623, 1.640, 1.630, 1.602],
        ],
    },
    Driver {
        engine: Kind::Coarse,
        model: "worker_pool",
        speed_ups: [
            [1.034, 1.247, 1.114, 1.188, 1.660, 1.703, 1.676, 1.419],
            [1.094, 1.360, 1.122, 1.131, 1.161, 1.284, 1.190, 1.354],
            [1.116, 1.477, 1.097, 1.080, 1.172, 1.233, 1.108, 1.281],
        ],
    },
    Driver {
        engine: Kind::Coarse,
        model: "partial_pipeline",
        speed_ups: [
            [1.064, 1.065, 1.200, 1.153, 1.509, 1.500, 1.390, 1.352],
            [1.266, 1.986, 1.684, 1.616, 1.798, 1.762, 1.690, 1.719],
            [1.006, 1.743, 1.669, 1.738, 2.312, 2.482, 2.097, 2.756],
        ],
    },
    Driver {
        engine: Kind::Coarse,
        model: "phased_pipeline",
        speed_ups: [
            [1.356, 1.622, 1.549, 1.296, 1.694, 1.932, 1.890, 1.739],
            [0.921, 1.113, 0.970, 0.920, 1.109, 1.256, 1.072, 1.146],
            [0.925, 1.137, 0.982, 0.936, 1.023, 1.070, 1.020, 1.152],
        ],
    },
    Driver {
        engine: Kind::Striped,
        model: "task_pool",
        speed_ups: [
            [1.786, 1.619, 1.942, 1.829, 1.724, 1.607, 1.687, 1.729],
            [2.013, 2.004, 1.981, 1.828, 1.747, 1.616, 1.736, 1.938],
            [2.109, 2.077, 1.911, 1.761, 1.690, 1.558, 1.738, 1.999],
        ],
    },
    Driver {
        engine: Kind::Striped,
        model: "worker_pool",
        speed_ups: [
            [2.314, 2.507, 2.219, 2.110, 2.047, 1.922, 1.937, 2.124],
            [3.536, 3.873, 3.174, 2.904, 2.964, 2.693, 2.892, 3.526],
            [4.419, 4.579, 3.339, 3.272, 3.126, 3.687, 3.070, 4.710],
        ],
    },
    Driver {
        engine: Kind::Striped,
        model: "partial_pipeline",
        speed_ups: [
            [1.663, 1.662, 1.728, 1.681, 1.575, 1.545, 1.671, 1.925],
            [2.923, 3.287, 2.543, 2.272, 2.093, 2.127, 2.406, 2.432],
            [3.669, 3.702, 3.091, 2.920, 2.700, 2.564, 2.748, 3.090],
        ],
    },
    Driver {
        engine: Kind::Striped,
        model: "phased_pipeline",
        speed_ups: [
            [1.999, 1.976, 1.794, 1.605, 1.602, 1.598, 1.946, 1.955],
            [2.957, 2.825, 2.325, 2.067, 2.079, 2.056, 2.269, 1.961],
            [3.099, 3.443, 2.411, 1.821, 1.916, 2.008, 2.138, 3.038],
        ],
    },
    Driver {
        engine: Kind::Fine,
        model: "task_pool",
        speed_ups: [
            [2.048, 1.899, 1.874, 1.793, 1.656, 1.459, 1.630, 1.767],
            [2.066, 2.033, 1.842, 1.833, 1.726, 1.569, 1.734, 1.864],
            [2.038, 2.039, 1.677, 1.819, 1.713, 1.590, 1.763, 1.878],
        ],
    },
    Driver {
        engine: Kind::Fine,
        model: "worker_pool",
        speed_ups: [
            [2.524, 2.636, 2.181, 1.986, 1.968, 2.091, 2.267, 2.242],
            [3.694, 3.823, 2.983, 3.244, 2.949, 3.269, 3.146, 3.898],
            [4.460, 5.165, 3.813, 3.475, 3.838, 3.642, 3.858, 4.499],
        ],
    },
    Driver {
        engine: Kind::Fine,
        model: "partial_pipeline",
        speed_ups: [
            [1.709, 1.884, 1.934, 1.823, 1.755, 1.622, 1.625, 1.906],
            [3.007, 3.214, 2.574, 2.292, 2.062, 2.195, 2.357, 2.857],
            [3.093, 3.856, 2.774, 2.688, 2.789, 2.610, 3.129, 2.863],
        ],
    },
    Driver {
        engine: Kind::Fine,
        model: "phased_pipeline",
        speed_ups: [
            [2.144, 2.103, 1.600, 1.622, 1.523, 1.648, 1.687, 2.034],
            [2.936, 3.052, 2.031, 2.181, 2.070, 2.115, 2.119, 2.377],
            [2.770, 2.975, 2.378, 1.951, 1.795, 2.176, 1.971, 2.477],
        ],
    },
    Driver {
        engine: Kind::Optimistic,
        model: "task_pool",
        speed_ups: [
            [2.017, 1.890, 2.054, 2.008, 1.605, 1.552, 1.725, 1.860],
            [1.974, 1.997, 2.184, 1.885, 1.861, 1.568, 1.691, 1.952],
            [1.544, 2.142, 1.552, 1.777, 1.641, 1.615, 1.675, 1.876],
        ],
    },
    Driver {
        engine: Kind::Optimistic,
        model: "worker_pool",
        speed_ups: [
            [2.571, 2.664, 2.254, 2.245, 1.888, 2.169, 2.347, 2.613],
            [4.070, 3.956, 4.347, 3.762, 3.353, 3.774, 4.266, 4.552],
            [4.234, 4.974, 4.368, 4.702, 4.916, 4.980, 5.106, 6.115],
        ],
    },
    Driver {
        engine: Kind::Optimistic,
        model: "partial_pipeline",
        speed_ups: [
            [1.680, 1.746, 1.737, 1.812, 1.460, 1.640, 1.766, 2.078],
            [2.646, 2.973, 2.664, 2.309, 2.226, 2.324, 2.637, 2.696],
            [3.311, 3.713, 3.208, 2.716, 2.923, 2.730, 2.711, 2.744],
        ],
    },
    Driver {
        engine: Kind::Optimistic,
        model: "phased_pipeline",
        speed_ups: [
            [1.991, 2.269, 1.748, 1.669, 2.117, 2.533, 2.407, 2.146],
            [2.946, 3.124, 2.543, 2.316, 2.406, 2.701, 2.623, 3.098],
            [2.667, 2.820, 2.373, 2.261, 2.781, 3.048, 2.054, 2.596],
        ],
    },
];

/// The study's name of an engine under a way to share work, if it has one.
#[must_use]
pub fn name(engine: Kind, model: &str) -> Option<String> {
    if (engine, model) == (Kind::Serial, "serial") {
        return Some(SERIAL.to_owned());
    }
    let (_, firewall) = FIREWALLS.iter().find(|(kind, _)| *kind == engine)?;
    let (_, strategy) = STRATEGIES.iter().find(|(name, _)| *name == model)?;
    Some(format!("{firewall}{strategy}Driver"))
}

/// The engine and the way to share work that stand for a driver of the study.
#[must_use]
pub fn named(driver: &str) -> Option<(Kind, &'static str)> {
    if driver == SERIAL {
        return Some((Kind::Serial, "serial"));
    }
    let all = DRIVERS.iter().map(|driver| (driver.engine, driver.model));
    all.into_iter().find(|(engine, model)| name(*engine, model).as_deref() == Some(driver))
}

/// All 17 names.
#[must_use]
pub fn names() -> Vec<String> {
    let all = DRIVERS.iter().filter_map(|driver| name(driver.engine, driver.model));
    std::iter::once(SERIAL.to_owned()).chain(all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seventeen_names_lead_back_to_their_systems() {
        assert_eq!(names().len(), 17);
        for driver in names() {
            let (engine, model) = named(&driver).unwrap();
            assert_eq!(name(engine, model), Some(driver));
        }
        assert_eq!(name(Kind::Optimistic, "worker_pool").unwrap(), "NonBlockingWorkerPoolDriver");
        assert_eq!(name(Kind::Tamis, "worker_pool"), None);
        assert_eq!(named("TamisWorkerPoolDriver"), None);
    }
}
