package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServiceTexts compares the unit and the property list with testdata/service.
func TestServiceTexts(t *testing.T) {
	s := service{argv: []string{`/opt/my "tools"/earshot`, "up", "--no-open", "-c", "/home/lee/a&b/$x 100%.yaml"}, log: "/home/lee/service.log", env: map[string]string{"XDG_DATA_HOME": "/data/<lee> $HOME", "CODEX_HOME": "/c"}}
	for name, got := range map[string]string{"earshot.service": s.unit(), "dev.earshot.up.plist": s.plist()} {
		path := filepath.Join("testdata", "service", name)
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v; now\n%s", path, err, got)
		}
	}
	d := xml.NewDecoder(strings.NewReader(s.plist()))
	var texts []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the property list is no XML: %v", err)
		}
		if text, ok := token.(xml.CharData); ok {
			texts = append(texts, string(text))
		}
	}
	if all := strings.Join(texts, "\n"); !strings.Contains(all, s.argv[0]) || !strings.Contains(all, s.argv[4]) {
		t.Errorf("the arguments are not in %q", all)
	}
}

// TestServiceFindsTheSameAgents: the service reads where the shell of who installs it does.
func TestServiceFindsTheSameAgents(t *testing.T) {
	newPerson(t)
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "HERMES_HOME", "XDG_DATA_HOME", "EARSHOT_ENGINE_DIR", "HTTPS_PROXY", "no_proxy", "SSL_CERT_FILE"} {
		t.Setenv(name, "/elsewhere/"+name)
		s, err := newUserService(new(configFile), io.Discard)
		if err != nil || !strings.Contains(s.unit(), name+"=/elsewhere/"+name) {
			t.Errorf("%s is not in the unit: %v\n%s", name, err, s.unit())
		}
	}
}

// TestService installs, looks and removes with a service manager that only takes notes.
func TestService(t *testing.T) {
	p := newPerson(t)
	p.write("share/earshot/store/part", "0123456789")
	for system, want := range map[string]string{
		"linux":  "systemctl --user daemon-reload\nsystemctl --user enable earshot.service\nsystemctl --user restart earshot.service\nsystemctl --user is-active earshot.service\nsystemctl --user disable --now earshot.service\nsystemctl --user daemon-reload\n",
		"darwin": "launchctl bootstrap DOMAIN PATH\nlaunchctl print DOMAIN/dev.earshot.up\nlaunchctl bootout DOMAIN/dev.earshot.up\n",
	} {
		var out, ran bytes.Buffer
		cfg := withoutFile()
		s := service{system: system, path: p.path("service/" + system), argv: []string{"earshot", "up"}, log: p.path("log/x"), out: &out, booted: func() bool { return true },
			run: func(_ context.Context, name string, args ...string) (string, error) {
				ran.WriteString(strings.Join(append([]string{name}, args...), " ") + "\n")
				return "active", nil
			}}
		for _, step := range []error{s.install(cfg, t.Context()), s.status(cfg, t.Context()), s.remove(cfg, t.Context())} {
			if step != nil {
				t.Fatal(step)
			}
		}
		if want := strings.NewReplacer("DOMAIN", domain(), "PATH", s.path).Replace(want); ran.String() != want {
			t.Errorf("%s ran\n%swant\n%s", system, &ran, want)
		}
		for _, want := range []string{"installed, ", "store 10 B", "retention  90 days, at most 10 GB, the oldest first", "The data stay in " + p.path("share/earshot")} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, &out)
			}
		}
		if _, err := os.Stat(s.path); err == nil {
			t.Error("the file is left")
		}
		if p.read("share/earshot/store/part") == "" {
			t.Error("the data are gone")
		}
	}
	s := service{system: "linux", path: p.path("u"), argv: []string{"earshot", "up"}, out: io.Discard, booted: func() bool { return false }}
	if err := s.install(withoutFile(), t.Context()); err == nil || !strings.Contains(err.Error(), "no systemd manages this machine: let its own service manager run `earshot up`") {
		t.Error(err)
	}
	if out := p.must("service", "status"); !strings.Contains(out, "not installed") {
		t.Error(out)
	}
	if out := p.must("service", "remove"); !strings.Contains(out, "not installed") {
		t.Error(out)
	}
}
