package dev.tamis;

import com.grack.nanojson.JsonArray;
import com.grack.nanojson.JsonObject;
import com.grack.nanojson.JsonParser;
import com.grack.nanojson.JsonParserException;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** Reads the documents that the native library answers. They may have keys that are not read. */
final class Json {
    private Json() {}

    static JsonObject object(String text) {
        try {
            return JsonParser.object().from(text);
        } catch (JsonParserException e) {
            throw new TamisException(
                    "the native library has answered no JSON object: " + e.getMessage(), e);
        }
    }

    /** A document of that schema, {@code tamis.NAME/1}. */
    static JsonObject document(String text, String schema) {
        JsonObject document = object(text);
        if (!schema.equals(document.getString("schema"))) {
            throw new TamisException(
                    "expected a document " + schema + ", found " + document.get("schema"));
        }
        return document;
    }

    /** What {@code each} makes of the objects of a list; of none where there is no such list. */
    static <T> List<T> list(JsonObject of, String key, Function<JsonObject, T> each) {
        JsonArray array = of.getArray(key);
        List<T> all = new ArrayList<>();
        for (int i = 0; array != null && i < array.size(); i++) {
            all.add(each.apply(array.getObject(i)));
        }
        return Collections.unmodifiableList(all);
    }

    /** The numbers of an object by their keys; none where there is no such object. */
    static Map<String, Long> numbers(JsonObject of, String key) {
        Map<String, Long> numbers = new LinkedHashMap<>();
        JsonObject object = of.getObject(key);
        if (object != null) {
            object.forEach(
                    (name, value) -> {
                        if (value instanceof Number number) {
                            numbers.put(name, number.longValue());
                        }
                    });
        }
        return Collections.unmodifiableMap(numbers);
    }

    /** A number, or null. */
    static Integer integer(JsonObject of, String key) {
        return of.get(key) instanceof Number number ? Integer.valueOf(number.intValue()) : null;
    }
}
