package spawn

import (
	"strings"
	"testing"
	"time"
)

const thread = "0199c0de-7a11-7000-8000-00000000beef"

func TestShell(t *testing.T) {
	asked := func(dir, prompt string) Spawn {
		return Spawn{Agent: Codex, Task: prompt, CorrelationPrompt: Prompt(Codex, dir, prompt)}
	}
	for command, want := range map[string]Spawn{
		`codex exec "count the hives"`:                                                        asked("/apiary", "count the hives"),
		`codex e 'count the hives' 2>/dev/null`:                                               asked("/apiary", "count the hives"),
		`cd barn && timeout 600 codex exec --full-auto -m gpt-5 "count" 2>&1 | tail -n 5`:     asked("/apiary/barn", "count"),
		`OPENAI_API_KEY=x /opt/bin/codex -c a="b c" exec -C /meadow -- "-v is not a flag" <f`: asked("/meadow", "-v is not a flag"),
		`codex exec --cd=/meadow --json hives > out.jsonl; cat out.jsonl`:                     asked("/meadow", "hives"),
		"npx codex exec \"$(cat <<'EOF'\ncount \"all\"\nthe $hives\nEOF\n)\"":                 asked("/apiary", "count \"all\"\nthe $hives"),
		"echo one # codex exec two\ncodex exec three":                                         asked("/apiary", "three"),
		`codex exec "count \"all\" \$5"`:                                                      asked("/apiary", `count "all" $5`),
		`codex exec "count $WHAT"`:                                                            {Agent: Codex, Task: "count $WHAT"},
		`cat task.md | codex exec -`:                                                          {Agent: Codex},
		`codex exec resume --last "go on"`:                                                    asked("/apiary", "go on"),
		`codex exec resume ` + thread + ` "go on"`:                                            {Codex, "go on", ID(Codex, thread), Prompt(Codex, "/apiary", "go on")},
	} {
		if got, ok := Shell(command, "/apiary"); !ok || got != want {
			t.Errorf("%s:\n got %+v %v\nwant %+v", command, got, ok, want)
		}
	}
	for _, command := range []string{"", "codex", "codex login", "git log --grep codex", "cat codex/exec.go", `echo "codex exec hives"`, `codex "exec`, "codex mcp-server", "which codex && exec bash"} {
		if s, ok := Shell(command, "/apiary"); ok {
			t.Errorf("%s: %+v", command, s)
		}
	}
}

func FuzzShell(f *testing.F) {
	f.Add(`cd a && codex exec -C b "$(cat <<'E'` + "\nx\nE\n)\" 2>&1 | tee \\")
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := Shell(s, "/a"); ok && (got.Agent == "" || len(got.Task) > len(s)) {
			t.Errorf("%+v", got)
		}
	})
}

func TestTool(t *testing.T) {
	args := func(kv ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(kv); i += 2 {
				if kv[i] == name {
					return kv[i+1]
				}
			}
			return ""
		}
	}
	first, ok := Tool("mcp__codex__codex", "/apiary", args("prompt", "hives", "cwd", "barn"))
	if want := (Spawn{Codex, "hives", "", Prompt(Codex, "/apiary/barn", "hives")}); !ok || first != want {
		t.Errorf("%+v, want %+v", first, want)
	}
	again, ok := Tool("codex-reply", "/apiary", args("prompt", "more", "threadId", thread))
	if want := (Spawn{Codex, "more", ID(Codex, thread), Prompt(Codex, "/apiary", "more")}); !ok || again != want {
		t.Errorf("%+v, want %+v", again, want)
	}
	for _, name := range []string{"Bash", "mcp__codex__status", "mcp__x__codex_search"} {
		if s, ok := Tool(name, "/", args("prompt", "hives")); ok {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestOutput(t *testing.T) {
	want := ID(Codex, thread)
	for name, text := range map[string]string{
		"header":    "OpenAI Codex v0.9\n--------\nworkdir: /apiary\nsession id: " + thread + "\n--------\n",
		"quoted":    `--------\nsession id: ` + thread + `\n`,
		"colored":   "\x1b[1msession id: \x1b[0m" + thread,
		"events":    `{"type":"thread.started","thread_id":"` + thread + `"}`,
		"in a JSON": `{\"type\":\"thread.started\",\"thread_id\":\"` + thread + `\"}`,
		"mcp":       `{"threadId":"` + thread + `","content":"seven"}`,
		"second":    "session id: none\nsession id: " + thread,
	} {
		if got := Output([]byte(text)); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, text := range map[string]string{
		"nothing": "seven hives", "no id": "session id: 7", "an id alone": thread, "cut": "session id: " + thread[:30],
		"far": "threadId" + strings.Repeat(" ", 99) + thread,
	} {
		if got := Output([]byte(text)); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestPromptIsOfAPlace(t *testing.T) {
	if Prompt(Codex, "/a/", "x ") != Prompt(Codex, "/a", "x") || Prompt(Codex, "/a", "x") == Prompt(Codex, "/b", "x") {
		t.Error("the same place has two names, or two have one")
	}
	if Prompt(Codex, "", "x") != "" || Prompt(Codex, "/a", " ") != "" || ID(Codex, "") != "" {
		t.Error("what is not known has a name")
	}
}

// TestLongCommands: a model may write a command of any length; each byte is read once.
func TestLongCommands(t *testing.T) {
	const most = 4 << 20
	for name, unit := range map[string]string{
		"a word": "x", "words": "x ", "quotes": "'x'", "double quotes": `"x"`, "commands": "x;", "targets": "2>", "here": "$(cat <<'", "escapes": `\x`, "comments": "#", "calls": "codex ",
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			Shell("codex "+strings.Repeat(unit, most/len(unit)), "/srv")
			Output([]byte(strings.Repeat(unit, most/len(unit))))
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s: %d bytes take more than a minute", name, most)
		}
	}
}
