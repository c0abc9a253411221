package semconv

import "github.com/earshot-dev/earshot/core/msg"

// traits are facts of a format that its traffic does not contain.
type traits struct {
	// provider applies to traffic that names none. The coding agents use the models of their
	// vendors unless the traffic names another.
	provider string
	// agentsStay is set if agent ids name configured teams and stored agents. The convention
	// excludes ids of single instances from gen_ai.agent.id.
	agentsStay bool
	// model is the meaning of the model in its messages.
	model which
	// family, rank, measures and ownNames make it one of the views of an agent's conversations; see View.
	family   string
	rank     uint8
	measures bool
	ownNames bool
	// calls, texts and turns are hops that it records; see Hops.
	calls, texts, turns bool
	// delegates is set if agents write what their delegates do by default, into the same stream or beside it; see ShowsDelegates.
	delegates bool
	// serves is set if a stream is that of a server, with events of its own beside those of its sessions; see Serves.
	serves bool
	// unique is set if ids of turns are unique everywhere; see Unique.
	unique bool
	// chains is set if a request may name the response that it goes on from in place of a conversation; see Chains.
	chains bool
}

// which of the two models a message names: the configured one, which the agent requests,
// or the one that responded.
type which uint8

const (
	unknown which = iota
	asked
	answered
)

// formats has the bundled formats. Other formats have no traits.
var formats = map[string]traits{
	"agno":                  {agentsStay: true, model: asked, delegates: true},
	"letta":                 {agentsStay: true, model: asked},
	"grace":                 {model: asked},
	"llm-message":           {agentsStay: true, model: asked},
	"legion":                {provider: "anthropic", agentsStay: true, model: answered},
	"claude-code":           {provider: "anthropic", model: answered, family: "claude-code", rank: 3, delegates: true, unique: true},
	"claude-stream":         {provider: "anthropic", model: answered, family: "claude-code", rank: 2},
	"claude-managed-agents": {provider: "anthropic", model: asked},
	"codex":                 {provider: "openai", model: asked, family: "codex", rank: 3, ownNames: true},
	"codex-exec":            {provider: "openai", model: asked, family: "codex", rank: 1, ownNames: true},
	"a2a":                   {model: asked, texts: true, turns: true},
	"acp":                   {model: asked, turns: true},
	"ag-ui":                 {model: answered},
	"opencode":              {model: asked, delegates: true, serves: true},
	"cline":                 {model: asked},
	"droid":                 {model: asked},
	"grok":                  {model: asked, delegates: true},
	"kimi-code":             {model: asked, delegates: true, unique: true},
	"kimi":                  {model: asked, delegates: true, unique: true},
	"roo-code":              {model: asked},
	"crush":                 {model: asked},
	"copilot":               {model: answered, family: "copilot", rank: 3, ownNames: true, delegates: true},
	"gemini-api":            {model: answered, family: "gemini-cli", rank: 1, measures: true, ownNames: true, chains: true},
	"gemini-live":           {model: asked},
	"gemini-cli":            {model: answered, family: "gemini-cli", rank: 3, ownNames: true},
	"codex-app-server":      {provider: "openai", model: asked, family: "codex", rank: 1, ownNames: true, serves: true},
	"mcp":                   {model: answered, calls: true},
	"cursor":                {model: asked},
	"goose":                 {model: asked},
	"hermes":                {model: asked},
	"langgraph":             {model: answered},
	"ollama":                {model: answered},
	"atif":                  {model: answered},
	"otel-genai":            {model: answered},
	"claude-code-otel":      {provider: "anthropic", model: answered, family: "claude-code", measures: true},
	"codex-otel":            {provider: "openai", model: asked, family: "codex", measures: true, ownNames: true},
	"gemini-otel":           {provider: "gcp.gemini", model: answered, family: "gemini-cli", measures: true, ownNames: true},
	"copilot-otel":          {model: answered, family: "copilot", measures: true, ownNames: true},
	"openclaw":              {model: answered},
	"pi":                    {model: answered},
	"vercel-ui":             {model: answered},
	"anthropic-sse":         {model: answered, family: "claude-code", rank: 1, measures: true},
	"bedrock-converse":      {provider: "aws.bedrock", model: answered},
	"openai-chat":           {model: answered, chains: true},
	"openai-responses":      {model: answered, family: "codex", rank: 2, measures: true, ownNames: true, chains: true},
}

// View returns how the format shows an agent's conversations that other formats show, too:
// the family of these formats, empty if there is no other, its rank among them, which is the
// higher the more of the conversation it has, and whether it knows when requests began and
// ended. A transcript has everything but times; telemetry has times and the final counts, and
// contents only if the user asked for them. ownNames is set if the formats have names of their own for
// runs or responses, and only the one with the highest rank is shown where names differ.
func View(format string) (family string, rank uint8, measures, ownNames bool) {
	t := formats[format]
	return t.family, t.rank, t.measures, t.ownNames
}

// Hops returns which requests of one program to another the format records: calls of the tools of a server, texts
// that an agent sends to another, and turns of a session in which another program works.
func Hops(format string) (calls, texts, turns bool) {
	t := formats[format]
	return t.calls, t.texts, t.turns
}

// ShowsDelegates reports whether agents of the format write what their delegates do, unless they are configured not to.
func ShowsDelegates(format string) bool { return formats[format].delegates }

// Serves reports whether a stream of the format is that of a server, which shows that it lives (OpenCode's
// server.heartbeat, every 10 s) when no session does.
func Serves(format string) bool { return formats[format].serves }

// Unique reports whether the ids of the format's turns are unique everywhere: a turn of two sessions is a copy, as
// Claude Code makes them when it resumes a session as a fork.
func Unique(format string) bool { return formats[format].unique }

// Chains reports whether messages of the format may name a response in place of their session and run.
func Chains(format string) bool { return formats[format].chains }

// RequestModel is gen_ai.request.model: the model that was asked for.
func RequestModel(s *msg.Span) string {
	if s.AskedModel == "" && formats[s.Format].model == asked {
		return s.Model
	}
	return s.AskedModel
}

// ResponseModel is gen_ai.response.model: the model that answered. Where it is not known
// of which of the two a protocol speaks, one name for both is the one that was asked for.
func ResponseModel(s *msg.Span) string {
	switch formats[s.Format].model {
	case asked:
		return ""
	case unknown:
		if s.Model == s.AskedModel && len(s.Request) == 0 {
			return ""
		}
	}
	return s.Model
}
