package dev.tamis;

import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

import java.nio.file.Files;
import java.nio.file.Path;

/** Skips tests of what calls the native library where it was not built, and says so. */
final class NeedsLibrary implements ExecutionCondition {
    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        String library = System.getProperty(NativeLibrary.PROPERTY, "");
        if (Files.isRegularFile(Path.of(library))) {
            return ConditionEvaluationResult.enabled("there is " + library);
        }
        System.err.println(
                "SKIPPED: "
                        + context.getDisplayName()
                        + ": no native library (cargo build -p tamis-java)");
        return ConditionEvaluationResult.disabled("no native library");
    }
}
