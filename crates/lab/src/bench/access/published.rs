//! Figures of both studies as they were published, to stand beside ours.

/// Speed-up over the serial firewall with 10 threads and 10 million packets, presets 1 to 8 (study 1, 5.3.2
/// to 5.3.4; a 10-core M1 Pro). Engine, model, values.
pub const STUDY1_SPEED_UPS: [(&str, &str, [f64; 8]); 5] = [
    ("striped", "worker_pool", [4.42, 4.58, 3.34, 3.27, 3.12, 3.68, 3.07, 4.71]),
    ("fine", "worker_pool", [4.46, 5.16, 3.81, 3.47, 3.83, 3.64, 3.85, 4.49]),
    ("optimistic", "worker_pool", [4.23, 4.97, 4.36, 4.70, 4.92, 4.98, 5.11, 6.12]),
    ("optimistic", "partial_pipeline", [3.31, 3.71, 3.21, 2.72, 2.92, 2.73, 2.71, 2.74]),
    ("optimistic", "phased_pipeline", [2.67, 2.82, 2.37, 2.26, 2.78, 3.05, 2.05, 2.60]),
];

/// Milliseconds for 10 million packets of preset 1 with 10 threads in a task pool, by stripes (5.3.1).
pub const STUDY1_STRIPES: [(usize, f64); 6] =
    [(1, 6538.), (10, 4265.), (100, 3820.), (1_000, 3560.), (10_000, 3699.), (100_000, 3698.)];

/// Packets and addresses of the rows of study 2.
pub const STUDY2_SIZES: [(usize, usize); 9] = [
    (1_000, 100),
    (10_000, 100),
    (10_000, 1_000),
    (100_000, 100),
    (100_000, 1_000),
    (500_000, 100),
    (500_000, 1_000),
    (1_000_000, 100),
    (1_000_000, 1_000),
];

/// A structure of study 2 under one way to share work: critical and overall milliseconds of the second of
/// two passes, in the order of [`STUDY2_SIZES`].
pub type Study2Row = (&'static str, &'static str, [(f64, f64); 9]);

/// Study 2, figures 9 to 11: mean of 100 loops on a Core i7 with 8 logical cores. The serial firewall was not
/// run with a million packets.
pub const STUDY2: [Study2Row; 7] = [
    (
        "matrix",
        "worker_pool",
        [
            (2.2, 3.),
            (16.1, 16.27),
            (16.85, 16.86),
            (116.68, 116.85),
            (123.18, 123.51),
            (562.18, 562.82),
            (597.99, 598.31),
            (1194.7, 1195.2),
            (1160.81, 1160.82),
        ],
    ),
    (
        "concurrent_map",
        "worker_pool",
        [
            (4.68, 4.99),
            (19.01, 19.01),
            (17.34, 17.34),
            (122.84, 122.84),
            (124.93, 125.08),
            (597.29, 597.29),
            (583.84, 584.),
            (1143.63, 1143.78),
            (1129.73, 1129.73),
        ],
    ),
    (
        "striped_map",
        "worker_pool",
        [
            (5.58, 5.79),
            (19.79, 19.97),
            (20.17, 20.34),
            (126.38, 126.58),
            (127.93, 128.16),
            (596.65, 596.86),
            (596.27, 596.51),
            (1165.17, 1165.42),
            (1186.03, 1186.26),
        ],
    ),
    (
        "matrix",
        "stream",
        [
            (3.92, 4.24),
            (16.53, 16.84),
            (15.64, 16.24),
            (100.48, 100.63),
            (100.86, 101.33),
            (471.82, 471.98),
            (482.62, 483.09),
            (942.97, 942.97),
            (939.93, 940.25),
        ],
    ),
    (
        "concurrent_map",
        "stream",
        [
            (4.2, 4.37),
            (19.34, 19.34),
            (19.08, 19.24),
            (103.51, 103.51),
            (107.53, 107.53),
            (582.28, 582.28),
            (526.74, 526.74),
            (1112.69, 1112.87),
            (1047.74, 1047.85),
        ],
    ),
    (
        "striped_map",
        "stream",
        [
            (5.54, 5.81),
            (26.1, 26.35),
            (26.13, 26.37),
            (120.25, 120.5),
            (118.06, 118.25),
            (525.48, 525.68),
            (533.19, 533.42),
            (1030.8, 1031.01),
            (1051.15, 1051.34),
        ],
    ),
    (
        "serial",
        "serial",
        [
            (7.16, 7.26),
            (65.36, 65.42),
            (61.9, 61.96),
            (643.89, 643.96),
            (649.28, 649.36),
            (3214.99, 3215.06),
            (3272.17, 3273.98),
            (f64::NAN, f64::NAN),
            (f64::NAN, f64::NAN),
        ],
    ),
];
