package host

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStartRefusals: the error for an executable that is no decoder, or not the configured
// one, names the reason, and none of its processes is left running.
func TestStartRefusals(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	dir := t.TempDir()
	script := func(name, body string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// core | app protocol | network | address | protocol
	const line = "|unix|/nowhere|grpc\n"
	for _, c := range []struct {
		name     string
		settings Settings
		want     string // part of the error; empty: it starts
	}{
		{"right checksum", Settings{Path: exe, Args: []string{"decoder"}, SHA256: hex.EncodeToString(sum[:])}, ""},
		{"right checksum in capitals", Settings{Path: exe, Args: []string{"decoder"}, SHA256: strings.ToUpper(hex.EncodeToString(sum[:]))}, ""},
		{"changed checksum", Settings{Path: exe, Args: []string{"decoder"}, SHA256: strings.Repeat("ab", 32)}, "the configuration has abab"},
		{"missing file", Settings{Path: filepath.Join(dir, "none")}, "no such file"},
		{"missing file with a checksum", Settings{Path: filepath.Join(dir, "none"), SHA256: strings.Repeat("ab", 32)}, "no such file"},
		{"not executable", Settings{Path: script("plain", "exit 0\n", 0o600)}, "permission denied"},
		{"ends at once", Settings{Path: script("ends", "exit 3\n", 0o700)}, "start "},
		{"writes another line", Settings{Path: script("chats", "echo hello\nsleep 60\n", 0o700)}, "start "},
		{"writes nothing", Settings{Path: script("silent", "exec sleep 60\n", 0o700), StartTimeout: 300 * time.Millisecond}, "timeout"},
		{"another version", Settings{Path: script("old", "echo '1|99"+line+"'\nexec sleep 60\n", 0o700)}, "version"},
		{"net/rpc", Settings{Path: script("rpc", "echo '1|1|unix|/nowhere|netrpc'\nexec sleep 60\n", 0o700)}, "start "},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.settings.Name, c.settings.SocketDir = "birds", t.TempDir()
			p, err := Start(t.Context(), c.settings)
			if err == nil {
				p.Kill()
			}
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "birds")):
				t.Errorf("got %v, want %q", err, c.want)
			default:
				t.Log(err)
			}
		})
	}
}
