//! What the original generators yield, and what a sequential model makes of it: FNV-1a hashes recorded from
//! the handed-out programs and a reference of their rules.

use crate::workload::Variant;

/// A stream's hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Golden {
    /// The first 1,000 packets of a fresh generator.
    pub first_1000: u64,
    /// The config packets of the warm-up.
    pub warm_up: u64,
    /// The 1,000,000 packets after it.
    pub next_1m: u64,
    /// Config packets among these.
    pub configs: u64,
}

/// What the 1,000,000 packets after the warm-up leave behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoldenOutcome {
    /// Data packets permitted.
    pub passed: u64,
    /// The hash of their histogram.
    pub histogram: u64,
    /// The sum of their fingerprints.
    pub fingerprints: u64,
}

/// The hashes of a variant's presets, in order.
#[must_use]
pub fn streams(variant: Variant) -> &'static [Golden; 8] {
    match variant {
        Variant::A => &A,
        Variant::B => &B,
        Variant::C => &C,
        Variant::D => &D,
    }
}

const fn golden(first_1000: u64, warm_up: u64, next_1m: u64, configs: u64) -> Golden {
    Golden { first_1000, warm_up, next_1m, configs }
}

const A: [Golden; 8] = [
    golden(0xc38a_c609_05df_b6b5, 0x9506_5cb1_ec7c_fb21, 0x99c4_84cb_cb2f_1cda, 213_152),
    golden(0xff3d_f42b_722d_e62e, 0xc870_7e4a_f276_15f9, 0x2292_ceb3_c554_84a9, 104_528),
    golden(0x078c_fcf6_5fb2_42df, 0x5e96_8413_c7c1_e208, 0x3896_b0e8_15b7_c52d, 95_384),
    golden(0x3ed8_e951_c561_b92c, 0x0c38_3cd0_96a9_7a42, 0xd532_6123_403a_dcc4, 77_120),
    golden(0x15bb_f8ad_4e4d_5722, 0x29bc_495b_4d0c_39de, 0x8bfc_ee27_2ec3_e0ab, 19_785),
    golden(0x5d41_6bfe_4881_71b9, 0x5cff_9d41_0eb9_5cb1, 0x2117_3b43_db2a_e6fe, 9_923),
    golden(0x136f_ef77_e0cf_e4e5, 0x312d_6ca7_f579_0fd6, 0xa042_6cd4_d380_3943, 39_207),
    golden(0x0391_1850_e11f_49fb, 0x5a8b_4abd_4704_1e15, 0x6d4e_b8be_a6b9_fa5e, 38_970),
];

const B: [Golden; 8] = [
    golden(0x077f_1c39_5cea_610d, 0x9506_5cb1_ec7c_fb21, 0x5c8f_4177_e8cc_0eae, 214_809),
    golden(0x7cf1_951f_580c_4855, 0xc870_7e4a_f276_15f9, 0xb9a6_2a7b_8959_05c6, 107_580),
    golden(0xe745_55ac_5256_62ca, 0x5e96_8413_c7c1_e208, 0xcb80_d94a_812c_6753, 99_072),
    golden(0xa894_08a5_ae1d_170c, 0x0c38_3cd0_96a9_7a42, 0x1c9b_1e5c_7781_ed74, 91_652),
    golden(0xbe54_0a13_bb6e_184a, 0x29bc_495b_4d0c_39de, 0xb4cd_dd64_0f01_c626, 51_835),
    golden(0x5286_fc3f_db1c_6ebe, 0x5cff_9d41_0eb9_5cb1, 0x657c_1353_c69d_1722, 42_333),
    golden(0x0eb2_07c7_9db9_766a, 0x312d_6ca7_f579_0fd6, 0x8686_c1e1_a2de_bf67, 70_488),
    golden(0x6290_b151_4c8c_1aa6, 0x5a8b_4abd_4704_1e15, 0x017b_4158_5ee5_900d, 102_392),
];

const C: [Golden; 8] = [
    golden(0xb5c1_f080_4ff4_956f, 0x4fed_6fd6_f39d_b5ff, 0x3ef6_68ba_78a1_8477, 214_809),
    golden(0xb9f2_c6a2_2ec3_e8f7, 0x7957_7abb_5708_8cbc, 0x1b1c_d77c_ec16_052f, 107_580),
    golden(0x97e2_6708_3125_d59b, 0x35e6_6e13_f629_9bf8, 0x4796_a463_7d49_3609, 99_072),
    golden(0x29d7_cb96_6329_474d, 0x4266_4835_3314_7acd, 0xb68a_1ba4_ecb0_628e, 91_652),
    golden(0x0530_32d7_d6f5_5b28, 0x6452_cb9c_e25e_2d15, 0xdc5c_dc8d_4b99_24d5, 51_835),
    golden(0xdf5a_517e_1af6_e87b, 0x9b9b_2cbe_a274_ecd4, 0x4277_42c2_7f7c_a08f, 42_333),
    golden(0x3bd5_d041_ce83_84e3, 0xc078_0170_c778_5821, 0xbbec_7ad7_b6e6_38f9, 70_488),
    golden(0x679e_8e45_1fe2_6be5, 0xa913_9e0a_d136_4257, 0xa59c_c6ed_7ff0_0052, 102_392),
];

const D: [Golden; 8] = [
    golden(0xe42a_348e_7557_ec27, 0x64dd_7ebb_a216_9701, 0x4870_6a5e_7e11_b6ad, 214_809),
    golden(0x6702_d7c7_db90_8d67, 0x1d4e_1a1c_99c1_5b68, 0xe55b_4a7f_97af_8d71, 107_580),
    golden(0x779c_0252_9e9f_4cf7, 0x9057_a8af_795a_bc18, 0x3261_7067_2907_f209, 99_072),
    golden(0x71fb_48ab_6b58_9351, 0xa87e_160f_be37_7ff9, 0x64bf_782a_6bda_ec33, 91_652),
    golden(0x3118_2eee_300b_ab48, 0x9e0d_9144_e539_8d9f, 0xde7e_26ca_79f6_a8fe, 51_835),
    golden(0x4097_5ed6_21e7_a4db, 0x6c0c_a1b4_2abf_cbac, 0xf6ed_f4be_ea4b_4837, 42_333),
    golden(0x8d2c_b99f_2a14_e9e3, 0x82c2_09a7_339d_abfb, 0xb410_4bfd_f2a5_95f6, 70_488),
    golden(0x5e4a_08a3_c572_e755, 0xf4ad_dcd8_61d6_a1b7, 0xd05c_3834_56ec_e63a, 102_392),
];

/// The outcomes of a variant's presets with a default of R, where they were recorded.
#[must_use]
pub fn outcomes(variant: Variant, default_accept: bool) -> Option<&'static [GoldenOutcome; 8]> {
    match (variant, default_accept) {
        (Variant::A, false) => Some(&A_DENY),
        (Variant::A, true) => Some(&A_ACCEPT),
        (Variant::B, false) => Some(&B_DENY),
        (Variant::C, true) => Some(&C_ACCEPT),
        (Variant::C, false) => Some(&C_DENY),
        (Variant::D, false) => Some(&D_DENY),
        _ => None,
    }
}

const fn outcome(histogram: u64, passed: u64, fingerprints: u64) -> GoldenOutcome {
    GoldenOutcome { passed, histogram, fingerprints }
}

const A_DENY: [GoldenOutcome; 8] = [
    outcome(0x5e3e_6607_1624_1eef, 541_734, 17_738_308_472),
    outcome(0x1be7_1cec_6642_0ad8, 332_383, 10_887_939_483),
    outcome(0xa9d8_5453_0251_b584, 346_885, 11_339_244_945),
    outcome(0x982e_a1e5_4519_683d, 316_632, 10_418_733_364),
    outcome(0xa106_c73e_963f_ad66, 366_157, 11_987_655_156),
    outcome(0x7144_c32d_11f5_6053, 306_382, 10_031_751_629),
    outcome(0x7bce_cec2_e9db_d0fb, 311_574, 10_228_626_456),
    outcome(0x47f8_3e9b_7168_3ac8, 237_157, 7_768_381_367),
];

const A_ACCEPT: [GoldenOutcome; 8] = [
    outcome(0x245f_1874_69dc_3f25, 733_160, 24_007_219_116),
    outcome(0xc36b_42e5_9283_44dd, 783_700, 25_678_189_957),
    outcome(0x2e1c_6f68_ce7a_f3c2, 836_649, 27_396_216_374),
    outcome(0x69ad_2bf6_6bb2_09e8, 844_421, 27_721_327_174),
    outcome(0x27c0_ee2b_e558_04aa, 809_653, 26_517_298_036),
    outcome(0xee33_a605_d829_da08, 697_889, 22_875_682_955),
    outcome(0x890a_76dc_831d_bcbb, 705_616, 23_128_040_520),
    outcome(0xe367_3e29_282b_ff6f, 711_284, 23_290_712_244),
];

const B_DENY: [GoldenOutcome; 8] = [
    outcome(0x1e7c_ec98_5762_5d0d, 540_852, 17_726_783_055),
    outcome(0x93f9_33ef_705f_4aa0, 334_671, 10_946_159_504),
    outcome(0x58b4_b2fe_d836_f7ac, 352_317, 11_544_791_062),
    outcome(0xb25a_0522_c3b8_4de5, 308_208, 10_088_324_502),
    outcome(0x3fef_92f3_54bf_d5d4, 356_103, 11_658_046_193),
    outcome(0x99a7_497e_e345_1530, 299_471, 9_803_973_116),
    outcome(0xab5b_6ebc_0f82_ef65, 303_530, 9_959_377_336),
    outcome(0xe0e6_4c34_e60f_4789, 220_162, 7_202_382_533),
];

const C_ACCEPT: [GoldenOutcome; 8] = [
    outcome(0x9adc_60db_0f02_9454, 753_131, 24_689_253_557),
    outcome(0x8509_fa98_a58d_ef3c, 815_631, 26_715_283_752),
    outcome(0x3a31_5fd2_f91a_47a6, 876_011, 28_691_934_845),
    outcome(0x1f1e_b963_5b1e_b510, 871_105, 28_537_335_648),
    outcome(0x6d81_0d4b_677d_1d6f, 917_460, 30_063_483_002),
    outcome(0x4c21_851e_6762_d092, 918_895, 30_092_011_051),
    outcome(0xeb4e_9b1b_5a63_904d, 901_728, 29_549_196_008),
    outcome(0x29fe_2713_64be_6183, 858_290, 28_139_023_169),
];

const C_DENY: [GoldenOutcome; 8] = [
    outcome(0xfc31_bff5_90c2_2325, 0, 0),
    outcome(0xfc31_bff5_90c2_2325, 0, 0),
    outcome(0xfc31_bff5_90c2_2325, 0, 0),
    outcome(0xfc31_bff5_90c2_2325, 0, 0),
    outcome(0xfc31_bff5_90c2_2325, 0, 0),
    outcome(0xfc31_bff5_90c2_2325, 0, 0),
    outcome(0xfc31_bff5_90c2_2325, 0, 0),
    outcome(0xfc31_bff5_90c2_2325, 0, 0),
];

const D_DENY: [GoldenOutcome; 8] = [
    outcome(0x47cb_da36_0132_fb0b, 222_168, 7_290_149_845),
    outcome(0x6dd4_a844_33ed_61a9, 73_702, 2_417_907_374),
    outcome(0x0205_fb81_7f83_6405, 67_830, 2_218_217_411),
    outcome(0xa0e9_6af5_d416_66e4, 8_545, 279_812_318),
    outcome(0x0604_f3aa_24c2_eb46, 401, 13_090_313),
    outcome(0xe06e_9a08_2156_6a84, 157, 5_068_323),
    outcome(0xcf4e_1bc3_4ad8_5b66, 121, 4_161_596),
    outcome(0xfc31_bff5_90c2_2325, 0, 0),
];
