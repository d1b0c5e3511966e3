package dev.tamis;

import com.grack.nanojson.JsonObject;
import com.grack.nanojson.JsonWriter;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * The rules and the access list of a run, asked and changed under traffic: what {@code tamis ctl}
 * does.
 *
 * <p>Contract: any thread. A change is in force when the call returns, and no packet meets half of
 * it. What is refused throws {@link RequestException} and changes nothing.
 */
public final class Rules {
    private final UnaryOperator<String> ask;

    Rules(UnaryOperator<String> ask) {
        this.ask = ask;
    }

    /**
     * What a change of the rules came to.
     *
     * @param revision its number
     * @param added rules that are new
     * @param gone rules that are not there any more
     * @param kept rules that are the same, with their counters
     * @param warnings what the run warns of
     */
    public record Applied(long revision, long added, long gone, long kept, List<String> warnings) {
        static Applied of(JsonObject answer) {
            List<Object> warnings =
                    answer.getArray("warnings") == null ? List.of() : answer.getArray("warnings");
            return new Applied(
                    answer.getLong("revision"),
                    answer.getLong("new"),
                    answer.getLong("gone"),
                    answer.getLong("kept"),
                    warnings.stream().map(Object::toString).toList());
        }
    }

    /**
     * Puts other rules in force.
     *
     * @param text the complete rules of a family, or of several, as save text
     * @return what it came to
     */
    public Applied apply(String text) {
        return Applied.of(ask("apply", Map.of("text", text)));
    }

    /**
     * Changes some rules, as {@code iptables-restore --noflush} does.
     *
     * @param text changes to the rules of one family
     * @return what it came to
     */
    public Applied change(String text) {
        return Applied.of(ask("apply", Map.of("text", text, "noflush", true)));
    }

    /**
     * Puts the rules before these in force again, as a new revision.
     *
     * @return what it came to
     */
    public Applied rollback() {
        return Applied.of(ask("rollback", Map.of()));
    }

    /**
     * The rules in force.
     *
     * @return save text, which can be applied
     */
    public String text() {
        return ask("get", Map.of()).getString("text");
    }

    /**
     * The rules in force with their counters.
     *
     * @return save text
     */
    public String counters() {
        return ask("counters", Map.of("save", true)).getString("text");
    }

    /**
     * Bans sources: their packets are dropped before any rule.
     *
     * @param addresses addresses or prefixes
     */
    public void ban(String... addresses) {
        bans("ban", addresses);
    }

    /**
     * Takes bans back.
     *
     * @param addresses addresses or prefixes
     */
    public void unban(String... addresses) {
        bans("unban", addresses);
    }

    private void bans(String action, String... addresses) {
        ask("bans", Map.of("text", String.join("\n", addresses), "action", action));
    }

    private JsonObject ask(String command, Map<String, Object> keys) {
        Map<String, Object> request = new LinkedHashMap<>();
        request.put("command", command);
        request.putAll(keys);
        JsonObject answer = Json.object(ask.apply(JsonWriter.string(request)));
        JsonObject error = answer.getObject("error");
        if (error != null) {
            throw new RequestException(error.getString("kind"), error.getString("what"));
        }
        return answer;
    }
}
