package attach

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Agent is a program that can be attached.
type Agent struct {
	Name, Title string
	Provider    string   // whose traffic it is
	Base        string   // base URL when nothing sets it
	Setting     *Setting // nil: a server, whose clients connect to the tap
	Routes      []Route  // of a server
	Transcripts string   // format of transcripts of which its traffic is no view (docs/provenance.md): read too, they are stored beside it
	Note        string   // a condition that the person has to know
}

// Home is a person's environment.
type Home struct {
	Dir    string
	Getenv func(string) string
}

// below is a folder of the home directory, or the one that a variable names.
func (h Home) below(variable string, name ...string) string {
	if dir := h.Getenv(variable); variable != "" && dir != "" {
		return dir
	}
	return filepath.Join(append([]string{h.Dir}, name...)...)
}

// AgentNames are those that Agent knows.
func AgentNames() []string {
	return []string{"claude", "codex", "gemini", "opencode", "agno", "letta"}
}

// Agent returns the agent of a name. settings, if set, is its settings file, and provider its provider where
// it can have several.
//
// Claude Code applies env of its settings.json. Codex takes openai_base_url, or the base_url of the
// model_provider in use; signed in with ChatGPT, its default is another server. Gemini CLI reads .env
// below .gemini, where a project has none of its own, and honours the variable with an API key alone.
// OpenCode has options.baseURL for each provider.
func (h Home) Agent(name, provider, settings string) (*Agent, error) {
	var a *Agent
	switch name {
	case "claude":
		a = &Agent{Title: "Claude Code", Provider: "anthropic", Setting: &Setting{
			Path: filepath.Join(h.below("CLAUDE_CONFIG_DIR", ".claude"), "settings.json"), Syntax: JSON, Keys: []string{"env", "ANTHROPIC_BASE_URL"},
		}}
	case "codex":
		dir := h.below("CODEX_HOME", ".codex")
		a = &Agent{Title: "Codex", Provider: "openai", Base: codexBase(dir), Setting: &Setting{
			Path: filepath.Join(dir, "config.toml"), Syntax: TOML, Keys: []string{"openai_base_url"},
		}}
		override(a, settings)
		own, ok, err := Setting{Path: a.Setting.Path, Syntax: TOML, Keys: []string{"model_provider"}}.Read()
		if err != nil {
			return nil, err
		}
		if ok && own != "openai" {
			a.Setting.Keys = []string{"model_providers", own, "base_url"}
			if _, ok, err := a.Setting.Read(); err != nil || !ok {
				return nil, fmt.Errorf("%s: the model_provider %q has no base_url to change", a.Setting.Path, own)
			}
		}
	case "gemini":
		a = &Agent{Title: "Gemini CLI", Provider: "gemini", Transcripts: "gemini-cli", Setting: &Setting{
			Path: filepath.Join(h.Dir, ".gemini", ".env"), Syntax: Env, Keys: []string{"GOOGLE_GEMINI_BASE_URL"},
		}, Note: "Gemini CLI takes this address with an API key, not when signed in with Google, and not in a project with a .env of its own."}
	case "opencode":
		if provider == "" {
			provider = "anthropic"
		}
		if provider != "anthropic" && provider != "openai" {
			return nil, fmt.Errorf("--provider %s: want anthropic or openai", provider)
		}
		path := filepath.Join(h.below("XDG_CONFIG_HOME", ".config"), "opencode", "opencode.json")
		if _, err := os.Stat(path + "c"); err == nil {
			path += "c"
		}
		a = &Agent{Title: "OpenCode", Provider: provider, Transcripts: "opencode", Setting: &Setting{Path: path, Syntax: JSON, Keys: []string{"provider", provider, "options", "baseURL"}}}
		if provider == "anthropic" {
			a.Base = "https://api.anthropic.com/v1"
		}
	case "agno":
		a = &Agent{Title: "AGNO", Base: "http://127.0.0.1:7777", Routes: []Route{{"", "agno"}}}
	case "letta":
		a = &Agent{Title: "Letta", Base: "http://127.0.0.1:8283", Routes: []Route{{"", "letta"}}}
	default:
		return nil, fmt.Errorf("no agent %q is known: %s; `earshot run -- CMD` records any program that takes its provider's base URL from the environment", name, strings.Join(AgentNames(), ", "))
	}
	if provider != "" && name != "opencode" {
		return nil, fmt.Errorf("--provider: %s has one provider", a.Title)
	}
	a.Name = name
	override(a, settings)
	if p, ok := FindProvider(a.Provider); ok {
		a.Routes = p.Routes
		if a.Base == "" {
			a.Base = p.Base
		}
		// The settings of the program go before the environment.
		if base := h.Getenv(p.Variable); base != "" && slices.Contains([]string{"claude", "gemini"}, name) {
			a.Base = base
		}
	}
	if a.Setting != nil {
		base, ok, err := a.Setting.Read()
		if err != nil {
			return nil, err
		}
		if ok {
			a.Base = base
		}
	}
	return a, nil
}

func override(a *Agent, settings string) {
	if settings != "" && a.Setting != nil {
		a.Setting.Path = settings
	}
}

// codexBase is the server that Codex uses by default. Which login it has is in auth.json; nothing
// else of that file is kept.
func codexBase(dir string) string {
	var auth struct {
		Key    *string `json:"OPENAI_API_KEY"`
		Tokens *struct {
		} `json:"tokens"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "auth.json"))
	if err == nil && json.Unmarshal(b, &auth) == nil && auth.Tokens != nil && (auth.Key == nil || *auth.Key == "") {
		return "https://chatgpt.com/backend-api/codex"
	}
	return "https://api.openai.com/v1"
}
