package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/discover"
)

// TestFolders: a person is shown the folder that has the transcripts, and the file where there is one.
func TestFolders(t *testing.T) {
	t.Setenv("HOME", "/home/mara")
	for glob, want := range map[string]string{
		"/home/mara/.claude/projects/**/*.jsonl":                   "~/.claude/projects",
		"/home/mara/.local/share/opencode/opencode*.db":            "~/.local/share/opencode",
		"/home/mara/.local/share/opencode/storage/{a,b}/**/*.json": "~/.local/share/opencode/storage",
		"/home/mara/.hermes/state.db":                              "~/.hermes/state.db",
	} {
		if got := folders([]string{filepath.FromSlash(glob)}); got != filepath.FromSlash(want) {
			t.Errorf("%s: %s, want %s", glob, got, want)
		}
	}
}

func TestAgeText(t *testing.T) {
	for d, want := range map[time.Duration]string{90 * 24 * time.Hour: "90 days", 24 * time.Hour: "1 day", 36 * time.Hour: "36h0m0s"} {
		if got := ageText(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// TestMachineWithoutConversations: a list that follows no other is not of more agents.
func TestMachineWithoutConversations(t *testing.T) {
	for want, files := range map[string]int{"No agent of this machine has a conversation yet; followed from their first one on: Codex, Pi\n": 0, "Followed too, without a conversation yet: Pi\n": 1} {
		var b strings.Builder
		r := &discover.Report{Agents: []discover.Agent{{Name: "Codex", Type: "file", Files: files, Conversations: files}, {Name: "Pi", Type: "file"}}}
		if err := writeFound(&b, r, time.Now(), false); err != nil || !strings.HasSuffix(b.String(), want) {
			t.Errorf("%v\n%s\nwant %s", err, b.String(), want)
		}
	}
}
