package dev.tamis;

import com.grack.nanojson.JsonObject;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What happened to every packet of a capture under rules: {@code tamis.replay/1}.
 *
 * @param packets how many packets there were
 * @param verdicts packets by verdict: {@code accept drop reject unknown skip}
 * @param rules what each rule matched, in the order of their chains
 * @param dropReasons dropped packets by reason
 * @param json the whole document
 */
public record Replay(
        long packets,
        Map<String, Long> verdicts,
        List<RuleHits> rules,
        Map<String, Long> dropReasons,
        String json) {
    /**
     * What a rule matched.
     *
     * @param family {@code ip ip6 arp bridge}
     * @param table its table
     * @param chain its chain
     * @param number its number in the chain, from 1
     * @param line its line in the file, from 1
     * @param text the rule
     * @param packets packets that it matched
     * @param bytes their bytes
     * @param maybe packets of which it is not known
     */
    public record RuleHits(
            String family,
            String table,
            String chain,
            int number,
            int line,
            String text,
            long packets,
            long bytes,
            long maybe) {
        static RuleHits of(JsonObject rule) {
            return new RuleHits(
                    rule.getString("family"),
                    rule.getString("table"),
                    rule.getString("chain"),
                    rule.getInt("number"),
                    rule.getInt("line"),
                    rule.getString("text"),
                    rule.getLong("packets"),
                    rule.getLong("bytes"),
                    rule.getLong("maybe"));
        }
    }

    static Replay of(String json) {
        JsonObject replay = Json.document(json, "tamis.replay/1");
        Map<String, Long> verdicts = new LinkedHashMap<>();
        JsonObject each = replay.getObject("verdicts");
        each.keySet()
                .forEach(
                        verdict ->
                                verdicts.put(verdict, each.getObject(verdict).getLong("packets")));
        return new Replay(
                replay.getLong("packets"),
                Map.copyOf(verdicts),
                Json.list(replay, "hits", RuleHits::of),
                Json.numbers(replay, "drop_reasons"),
                json);
    }

    /**
     * Packets that met a verdict.
     *
     * @param verdict {@code accept}, {@code drop}, {@code reject}, {@code unknown} or {@code skip}
     * @return how many
     */
    public long verdict(String verdict) {
        return verdicts.getOrDefault(verdict, 0L);
    }
}
