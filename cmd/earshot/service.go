package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/discover"
)

func newService() *cobra.Command {
	var file configFile
	c := &cobra.Command{
		Use:        "service",
		SuggestFor: []string{"status"},
		Short:      "Keep earshot up running from login on",
		Long: `Keep earshot up running as a service of the user: a systemd user unit on Linux, a launchd
agent on macOS. earshot service status prints the address of its pages.`,
		Example: `  earshot service install
  earshot service status`,
	}
	sub := func(use, short string, run func(service, *config.Config, context.Context) error) {
		s := &cobra.Command{Use: use, Short: short, Example: "  earshot service " + use, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := file.load(true)
			if err != nil {
				return err
			}
			made, err := newUserService(&file, c.OutOrStdout())
			if err != nil {
				return err
			}
			return run(made, cfg, c.Context())
		}}
		file.add(s)
		c.AddCommand(s)
	}
	sub("install", "Start it now and at each login", service.install)
	sub("status", "Whether it runs, what is stored and how long it is kept", service.status)
	sub("remove", "Stop it; the data stay", service.remove)
	return c
}

// service is the service of a user.
type service struct {
	system string // runtime.GOOS
	path   string // of the unit or property list
	argv   []string
	env    map[string]string // that the session of the service does not have
	log    string
	out    io.Writer
	booted func() bool // systemd manages this machine
	run    func(ctx context.Context, name string, args ...string) (string, error)
}

const (
	unitName  = "earshot.service"
	agentName = "dev.earshot.up"
)

func newUserService(file *configFile, out io.Writer) (service, error) {
	s := service{system: runtime.GOOS, out: out, booted: booted, env: make(map[string]string), run: func(ctx context.Context, name string, args ...string) (string, error) {
		b, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		return strings.TrimSpace(string(b)), err
	}}
	exe, err := os.Executable()
	if err != nil {
		return s, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return s, err
	}
	data, err := userData()
	if err != nil {
		return s, err
	}
	s.argv, s.log = []string{exe, "up", "--no-open"}, filepath.Join(data, "service.log")
	if file.path != "" || os.Getenv("EARSHOT_CONFIG") != "" {
		path, err := filepath.Abs(file.name())
		if err != nil {
			return s, err
		}
		s.argv = append(s.argv, "-c", path)
	}
	// Taps reach providers as agents do in the shell.
	network := []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"}
	for _, name := range slices.Concat(discover.Variables(), []string{"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "EARSHOT_ENGINE_DIR"}, network) {
		if v := os.Getenv(name); v != "" {
			s.env[name] = v
		}
	}
	if s.system == "darwin" {
		s.path = filepath.Join(home, "Library", "LaunchAgents", agentName+".plist")
		return s, nil
	}
	dir, err := os.UserConfigDir()
	s.path = filepath.Join(dir, "systemd", "user", unitName)
	return s, err
}

// booted is systemd's own test of whether it manages the machine.
func booted() bool {
	info, err := os.Lstat("/run/systemd/system")
	return err == nil && info.IsDir()
}

// supported is an error with a way out where there is no service manager that we know.
func (s service) supported() error {
	switch {
	case s.system == "darwin", s.system == "linux" && s.booted():
		return nil
	case s.system == "linux":
		return errors.New("no systemd manages this machine: let its own service manager run `" + strings.Join(s.argv, " ") + "`")
	}
	return fmt.Errorf("%s has no service manager that is known here: let the system start `%s` at login", s.system, strings.Join(s.argv, " "))
}

func (s service) install(_ *config.Config, ctx context.Context) error {
	if err := s.supported(); err != nil {
		return err
	}
	for _, dir := range []string{filepath.Dir(s.path), filepath.Dir(s.log)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	_, err := os.Stat(s.path)
	again := err == nil
	text, start := s.unit(), [][]string{{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "enable", unitName}, {"systemctl", "--user", "restart", unitName}}
	if s.system == "darwin" {
		text, start = s.plist(), [][]string{{"launchctl", "bootstrap", domain(), s.path}}
		if again {
			start = append([][]string{{"launchctl", "bootout", domain() + "/" + agentName}}, start...)
		}
	}
	if err := os.WriteFile(s.path, []byte(text), 0o600); err != nil {
		return err
	}
	for _, argv := range start {
		if out, err := s.run(ctx, argv[0], argv[1:]...); err != nil && argv[1] != "bootout" {
			return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
		}
	}
	fmt.Fprintf(s.out, "%s is installed and started. `earshot service status` says where its pages are.\n", s.path)
	if s.system == "linux" {
		fmt.Fprintln(s.out, "It ends with your last session; `loginctl enable-linger` keeps it running without one.")
	}
	return nil
}

func (s service) remove(cfg *config.Config, ctx context.Context) error {
	if _, err := os.Stat(s.path); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(s.out, "The service is not installed.")
		return nil
	}
	stop := []string{"systemctl", "--user", "disable", "--now", unitName}
	if s.system == "darwin" {
		stop = []string{"launchctl", "bootout", domain() + "/" + agentName}
	}
	out, err := s.run(ctx, stop[0], stop[1:]...)
	if err != nil {
		fmt.Fprintf(s.out, "It was not stopped: %s: %v: %s\n", strings.Join(stop, " "), err, out)
	}
	if err := os.Remove(s.path); err != nil {
		return err
	}
	if s.system == "linux" {
		_, _ = s.run(ctx, "systemctl", "--user", "daemon-reload")
	}
	fmt.Fprintf(s.out, "%s is removed. The data stay in %s.\n", s.path, cfg.DataDir)
	return nil
}

func (s service) status(cfg *config.Config, ctx context.Context) error {
	state := "not installed"
	if _, err := os.Stat(s.path); err == nil {
		state = "installed, " + s.state(ctx)
	}
	fmt.Fprintf(s.out, "service    %s (%s)\n", state, s.path)
	if address, ok := notedPages(cfg.DataDir); ok {
		fmt.Fprintf(s.out, "pages      %s\n", address)
	}
	fmt.Fprintf(s.out, "data       %s: store %s, journal %s\n", cfg.DataDir, byteSize(folderSize(filepath.Join(cfg.DataDir, "store"))), byteSize(folderSize(filepath.Join(cfg.DataDir, "journal"))))
	if !cfg.Embedded() {
		fmt.Fprintln(s.out, "retention  that of the configured server")
		return nil
	}
	age, size := "for ever", "any size"
	if d := time.Duration(cfg.Store.MaxAge); d > 0 {
		age = strconv.FormatFloat(d.Hours()/24, 'f', -1, 64) + " days"
	}
	if n := int64(cfg.Store.MaxSize); n > 0 {
		size = "at most " + byteSize(n)
	}
	fmt.Fprintf(s.out, "retention  %s, %s, the oldest first (store.max_age, store.max_size)\n", age, size)
	return nil
}

// state is that of an installed service.
func (s service) state(ctx context.Context) string {
	if s.system == "darwin" {
		if _, err := s.run(ctx, "launchctl", "print", domain()+"/"+agentName); err != nil {
			return "not loaded"
		}
		return "loaded"
	}
	out, err := s.run(ctx, "systemctl", "--user", "is-active", unitName)
	if out == "" && err != nil {
		return "state unknown: " + err.Error()
	}
	return out
}

func domain() string { return "gui/" + strconv.Itoa(os.Getuid()) }

// folderSize is the size of the files in a folder.
func folderSize(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // removed by the store in the meantime
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}

// unit is the systemd user unit.
func (s service) unit() string {
	// Quoted as systemd.syntax(7) has it: C escapes, and % and $ twice.
	quote := func(v string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$", "\n", `\n`).Replace(v) + `"`
	}
	var b strings.Builder
	b.WriteString("[Unit]\nDescription=Earshot: the work of this user's AI agents\nDocumentation=https://github.com/earshot-dev/earshot\n\n[Service]\n")
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		fmt.Fprintf(&b, "Environment=%s\n", strings.ReplaceAll(quote(name+"="+s.env[name]), "$$", "$"))
	}
	b.WriteString("ExecStart=")
	for i, a := range s.argv {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(quote(a))
	}
	b.WriteString("\nRestart=on-failure\nRestartSec=10\n# The sidecar drains for ten seconds before it ends the store.\nKillMode=mixed\nTimeoutStopSec=30\nNice=10\n\n[Install]\nWantedBy=default.target\n")
	return b.String()
}

// plist is the property list of the launchd agent.
func (s service) plist() string {
	text := func(v string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(v))
		return "<string>" + b.String() + "</string>"
	}
	var b strings.Builder
	b.WriteString(xml.Header + `<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	` + text(agentName) + `
	<key>ProgramArguments</key>
	<array>
`)
	for _, a := range s.argv {
		b.WriteString("\t\t" + text(a) + "\n")
	}
	b.WriteString("\t</array>\n")
	if len(s.env) > 0 {
		b.WriteString("\t<key>EnvironmentVariables</key>\n\t<dict>\n")
		for _, name := range slices.Sorted(maps.Keys(s.env)) {
			b.WriteString("\t\t<key>" + name + "</key>\n\t\t" + text(s.env[name]) + "\n")
		}
		b.WriteString("\t</dict>\n")
	}
	b.WriteString(`	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ProcessType</key>
	<string>Background</string>
	<key>ExitTimeOut</key>
	<integer>30</integer>
	<key>StandardOutPath</key>
	` + text(s.log) + `
	<key>StandardErrorPath</key>
	` + text(s.log) + `
</dict>
</plist>
`)
	return b.String()
}
