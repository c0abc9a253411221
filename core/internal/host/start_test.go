package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/earshot-dev/earshot/core/sandbox"
	"github.com/earshot-dev/earshot/plugins/legion"
)

// TestStartRefusals: the error for an executable that is no decoder, or not the configured
// one, names the reason. One that ended is launched again. Nothing is left of it.
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
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err := os.Symlink(exe, filepath.Join(dir, "on-the-path")); err != nil {
		t.Fatal(err)
	}
	interpreted := filepath.Join(dir, "interpreted")
	if err := os.WriteFile(interpreted, []byte("#!"+script("interpreter", "exit 0\n", 0o600)+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "no program")
	if err := os.WriteFile(plain, []byte{0, 1, 2, 3}, 0o700); err != nil {
		t.Fatal(err)
	}
	// core | app protocol | network | address | protocol
	const line = "|unix|/nowhere|grpc\n"
	for _, c := range []struct {
		name     string
		settings Settings
		want     string // part of the error; empty: it starts
		again    int
	}{
		{"right checksum", Settings{Path: exe, Args: []string{"decoder"}, SHA256: hex.EncodeToString(sum[:])}, "", 0},
		{"right checksum in capitals", Settings{Path: exe, Args: []string{"decoder"}, SHA256: strings.ToUpper(hex.EncodeToString(sum[:]))}, "", 0},
		{"changed checksum", Settings{Path: exe, Args: []string{"decoder"}, SHA256: strings.Repeat("ab", 32)}, "the configuration has abab", 0},
		{"missing file", Settings{Path: filepath.Join(dir, "none")}, "no such file", 0},
		{"missing file with a checksum", Settings{Path: filepath.Join(dir, "none"), SHA256: strings.Repeat("ab", 32)}, "no such file", 0},
		{"folder", Settings{Path: dir}, "not a file", 0},
		{"command", Settings{Path: "on-the-path", Args: []string{"decoder"}}, "", 0},
		{"missing command", Settings{Path: "not-on-the-path"}, "executable file not found", 0},
		{"not executable", Settings{Path: script("plain", "exit 0\n", 0o600)}, "permission denied", 0},
		{"interpreter is not executable", Settings{Path: interpreted, Rules: sandbox.Rules{Processes: true}}, "permission denied", 2},
		{"ends at once", Settings{Path: script("ends", "exit 3\n", 0o700)}, "start ", 2},
		{"writes another line", Settings{Path: script("chats", "echo hello\nsleep 60\n", 0o700)}, "start ", 2},
		{"writes nothing", Settings{Path: script("silent", "exec sleep 60\n", 0o700), StartTimeout: 300 * time.Millisecond}, "timeout", 0},
		{"another version", Settings{Path: script("old", "echo '1|99"+line+"'\nexec sleep 60\n", 0o700)}, "version", 2},
		{"no program", Settings{Path: plain}, "exec format error", 2},
		{"net/rpc", Settings{Path: script("rpc", "echo '1|1|unix|/nowhere|netrpc'\nexec sleep 60\n", 0o700)}, "start ", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			c.settings.Name, c.settings.SocketDir, c.settings.Logger = "birds", t.TempDir(), slog.New(slog.NewTextHandler(&log, nil))
			p, err := Start(t.Context(), c.settings)
			if err == nil {
				p.Kill()
			}
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "birds")):
				t.Errorf("got %v, want %q", err, c.want)
			case err != nil && strings.Contains(err.Error(), "sandbox"):
				t.Errorf("it runs in no sandbox, and the error names one: %v", err)
			default:
				t.Log(err)
			}
			if n := strings.Count(log.String(), "launched again"); n != c.again {
				t.Errorf("launched again %d times, want %d", n, c.again)
			}
			if left, err := os.ReadDir(c.settings.SocketDir); err != nil || len(left) > 0 && (c.settings.SHA256 == "" || runtime.GOOS == "linux") {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// TestLaunchedAgain: a process that ends before it answers, as one that is killed does, is launched again, three times at most.
func TestLaunchedAgain(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for ends, starts := range map[int]bool{1: true, 2: true, 3: false} {
		dir := t.TempDir()
		path := filepath.Join(dir, "acme")
		text := fmt.Sprintf("#!/bin/sh\necho >> %[1]s/launched\n[ $(wc -l < %[1]s/launched) -le %[2]d ] && exit 3\nexec %[3]s decoder\n", dir, ends, exe)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		p, err := Start(t.Context(), Settings{Name: "acme", Path: path, SocketDir: dir})
		if err == nil {
			p.Kill()
		}
		launched, rerr := os.ReadFile(filepath.Join(dir, "launched"))
		if rerr != nil {
			t.Fatal(rerr)
		}
		if (err == nil) != starts || len(launched) != min(ends+1, 3) {
			t.Errorf("one that ends %d times: %v, launched %d times", ends, err, len(launched))
		}
	}
}

// TestCopied: where memory cannot be executed, the copy of a pinned program is a file that can, in a directory of ours.
func TestCopied(t *testing.T) {
	dir := t.TempDir()
	f, err := copied(dir, func(w io.Writer) error { _, err := io.WriteString(w, "#!/bin/sh\n"); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "#!/bin/sh\n" || filepath.Dir(f.Name()) != dir {
		t.Errorf("%s: %q, %v", f.Name(), b, err)
	}
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := copied(dir, func(io.Writer) error { return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a copy that is not whole: %v", err)
	}
}

// TestDescription: the process describes its decoder as the decoder does itself.
func TestDescription(t *testing.T) {
	p, err := Start(t.Context(), Settings{Name: "legion", Path: os.Args[0], Args: []string{"decoder"}, SocketDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	want := legion.New().Info()
	if d := cmp.Diff(want, p.Info(), cmpopts.EquateEmpty()); d != "" || len(want.Transports) == 0 {
		t.Error(d)
	}
	if !p.Snapshots() {
		t.Error("its decoders do not resume from snapshots")
	}
	for options, valid := range map[string]bool{"{}": true, `{"unheard": 1}`: false} {
		if problems, err := p.Check(t.Context(), options); err != nil || (len(problems) == 0) != valid {
			t.Errorf("%s: %q, %v", options, problems, err)
		}
	}
	p.Abort()
	if problems, err := p.Check(t.Context(), "{}"); err == nil || !strings.Contains(err.Error(), "decoder legion: Check: ") {
		t.Errorf("of a process that has ended: %q, %v", problems, err)
	}
	if _, err := p.Decode(t.Context()); err == nil || !strings.Contains(err.Error(), "decoder legion: open Decode: ") {
		t.Errorf("of a process that has ended: %v", err)
	}
}
