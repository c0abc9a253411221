package dashboards

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const unitFile = "../deploy/systemd/earshot.service"

// unitKeys are the keys of a unit that the file uses, by section: systemd passes
// over another one with no more than a warning.
var unitKeys = map[string][]string{
	"Unit": {"Description", "Documentation", "After", "Wants"},
	"Service": {
		"ExecStart", "StateDirectory", "StateDirectoryMode", "DynamicUser", "Environment", "Restart", "RestartSec", "EnvironmentFile", "UMask", "CapabilityBoundingSet",
		"NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs",
		"ProtectControlGroups", "ProtectClock", "ProtectHostname", "RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID",
		"LockPersonality", "SystemCallArchitectures", "LimitNOFILE",
	},
	"Install": {"WantedBy"},
}

// TestUnit reads the systemd unit strictly, holds its command against the binary,
// and asks systemd where there is one.
func TestUnit(t *testing.T) {
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]string)
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch name, ok := strings.CutPrefix(line, "["); {
		case line == "" || strings.HasPrefix(line, "#"):
		case ok:
			section = strings.TrimSuffix(name, "]")
		default:
			key, value, found := strings.Cut(line, "=")
			if !found || !slices.Contains(unitKeys[section], key) {
				t.Errorf("[%s] knows no %q", section, line)
			}
			if values[key] != "" {
				t.Errorf("%s is said twice", key)
			}
			values[key] = value
		}
	}
	for key, want := range map[string]string{
		"Restart": "^(no|always|on-(success|failure|abnormal|watchdog|abort))$", "RestartSec": `^\d+$`, "StateDirectory": "^earshot$", "StateDirectoryMode": "^0700$",
		"LimitNOFILE": `^\d+$`, "ProtectSystem": "^strict$", "WantedBy": `^multi-user\.target$`, "DynamicUser": "^yes$", "NoNewPrivileges": "^yes$",
	} {
		if !regexp.MustCompile(want).MatchString(values[key]) {
			t.Errorf("%s=%s, want %s", key, values[key], want)
		}
	}
	command := strings.Fields(values["ExecStart"])
	if len(command) < 2 || command[0] != "/usr/local/bin/earshot" {
		t.Fatalf("ExecStart=%s", values["ExecStart"])
	}
	bin := filepath.Join(theWorld(t).bin, "earshot")
	help, err := exec.CommandContext(t.Context(), bin, command[1], "--help").Output()
	if err != nil {
		t.Fatalf("earshot %s --help: %v", command[1], err)
	}
	for _, a := range command[2:] {
		if strings.HasPrefix(a, "-") && !regexp.MustCompile(`(?m)^ +(-\w, )?`+a+`\b`).Match(help) {
			t.Errorf("earshot %s has no %s:\n%s", command[1], a, help)
		}
	}
	systemd, err := exec.LookPath("systemd-analyze")
	if errors.Is(err, exec.ErrNotFound) {
		return // the checks above cover the file as far as they can
	}
	file := filepath.Join(t.TempDir(), filepath.Base(unitFile))
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), command[0], bin)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.CommandContext(t.Context(), systemd, "verify", "--man=no", file).CombinedOutput() // its exit status does not reflect warnings
	for line := range strings.Lines(string(out)) {                                                   // it warns of the machine's other units, too
		if strings.Contains(line, filepath.Base(file)) {
			t.Errorf("systemd-analyze: %s", line)
		}
	}
}
