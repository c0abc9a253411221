package main

import (
	"path/filepath"
	"testing"
	"time"
)

// TestFolders: a person is told the folder that has the transcripts, and the file where there is one.
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
