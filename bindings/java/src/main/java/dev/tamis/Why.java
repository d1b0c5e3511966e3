package dev.tamis;

import com.grack.nanojson.JsonObject;

import java.util.List;

/**
 * The whole path of one packet, rule by rule: {@code tamis.why/1}.
 *
 * @param packet the packet, as tamis writes packets
 * @param verdict {@code accept}, {@code drop}, {@code reject}, {@code unknown} or {@code skip}
 * @param by what decided it: a rule, a policy, or what else; null where the verdict is unknown
 * @param line the line of that in the file of rules, or null
 * @param rules the rules that it met, in order
 * @param json the whole document, with the steps that are no rules
 */
public record Why(
        String packet, String verdict, String by, Integer line, List<Met> rules, String json) {
    /**
     * A rule that the packet met.
     *
     * @param table its table
     * @param chain its chain
     * @param number its number in the chain, from 1
     * @param text the rule
     * @param matches {@code yes}, {@code no}, or both where it is not known
     * @param refusedBy the match that did not hold, or null
     */
    public record Met(
            String table, String chain, int number, String text, String matches, String refusedBy) {
        static Met of(JsonObject step) {
            return new Met(
                    step.getString("table"),
                    step.getString("chain"),
                    step.getInt("number"),
                    step.getString("text"),
                    step.getString("matches"),
                    step.getString("refused_by"));
        }
    }

    static Why of(String json) {
        JsonObject why = Json.document(json, "tamis.why/1");
        List<Met> rules =
                Json.list(
                        why,
                        "steps",
                        step -> "rule".equals(step.getString("step")) ? Met.of(step) : null);
        return new Why(
                why.getString("packet"),
                why.getString("verdict"),
                why.getString("by"),
                Json.integer(why, "line"),
                rules.stream().filter(met -> met != null).toList(),
                json);
    }
}
