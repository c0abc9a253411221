package semconv

// Exporter is an agent or a library that exports OpenTelemetry itself, by the names of its resource and
// scope. An empty pattern matches everything; * does not match a slash.
type Exporter struct {
	Service string // glob of service.name
	Scope   string // glob of the scope's name
	Format  string
}

// Telemetry lists the exporters with the format of their telemetry; the first match counts, and
// the last one matches everything.
//
//   - Claude Code: code.claude.com/docs/en/monitoring-usage. Its scope is com.anthropic.claude_code with
//     the signal behind it, also where a user has set another service.name.
//   - Codex: service.name is the name of the program that started it, so that its own scopes
//     count as well.
//   - Copilot: github-copilot is the CLI, copilot-chat VS Code, vs-copilot Visual Studio.
func Telemetry() []Exporter {
	return []Exporter{
		{Scope: Scope, Format: "otel-genai"}, // another sidecar; service.name is its source
		{Scope: "com.anthropic.claude_code*", Format: "claude-code-otel"},
		{Service: "claude-code*", Format: "claude-code-otel"},
		{Scope: "codex_*", Format: "codex-otel"},
		{Service: "codex_*", Format: "codex-otel"},
		{Service: "codex-*", Format: "codex-otel"},
		{Service: "gemini-cli", Format: "gemini-otel"},
		{Scope: "gemini-cli", Format: "gemini-otel"},
		{Service: "github-copilot*", Format: "copilot-otel"},
		{Service: "copilot-chat", Format: "copilot-otel"},
		{Service: "vs-copilot", Format: "copilot-otel"},
		{Format: "otel-genai"},
	}
}
