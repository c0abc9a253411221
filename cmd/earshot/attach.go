package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/earshot-dev/earshot/core/attach"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/freeport"
)

func newAttach() *cobra.Command {
	a := attaching{}
	c := &cobra.Command{
		Use:   "attach " + strings.Join(attach.AgentNames(), "|"),
		Short: "Record an agent's traffic with its provider through a tap",
		Long: `Add a tap on a free loopback port to the configuration, and set the agent's base URL to
it: ANTHROPIC_BASE_URL in Claude Code's settings.json, openai_base_url in Codex's config.toml,
GOOGLE_GEMINI_BASE_URL in Gemini CLI's .env, options.baseURL in OpenCode's configuration.
A base URL that is set already becomes the tap's upstream. For an agent server (agno, letta) the
tap is all: let its clients connect to it.

Both changes are shown first. Comments and order of the files stay, and earshot detach restores them
byte for byte. From then on the agent needs the tap, so earshot up or earshot run has to be running.`,
		Example: `  earshot attach claude
  earshot attach codex --dry-run
  earshot attach agno --upstream http://127.0.0.1:7777 --yes`,
		Args: cobra.ExactArgs(1), ValidArgs: attach.AgentNames(),
		RunE: func(c *cobra.Command, args []string) error { return a.attach(c, args[0]) },
	}
	a.file.add(c)
	c.Flags().BoolVar(&a.yes, "yes", false, "apply the changes without a question")
	c.Flags().BoolVar(&a.dry, "dry-run", false, "show the changes alone")
	c.Flags().StringVar(&a.settings, "settings", "", "settings `FILE` of the agent, where it has another one")
	c.Flags().StringVar(&a.upstream, "upstream", "", "`URL` of the provider or agent server (default: the agent's)")
	c.Flags().StringVar(&a.provider, "provider", "", "anthropic or openai, for opencode (default anthropic)")
	return c
}

func newDetach() *cobra.Command {
	a := attaching{}
	c := &cobra.Command{
		Use:   "detach [AGENT...]",
		Short: "Undo earshot attach",
		Long: `Restore the files that earshot attach changed, byte for byte. From a file that was changed
since, only the change of earshot attach is taken out. Without AGENT all are detached.`,
		Example: `  earshot detach claude
  earshot detach`,
		RunE: func(c *cobra.Command, args []string) error { return a.detach(c, args) },
	}
	a.file.add(c)
	return c
}

// attaching attaches and detaches agents.
type attaching struct {
	file                         configFile
	yes, dry                     bool
	settings, upstream, provider string
}

func (a *attaching) attach(c *cobra.Command, name string) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	out := c.OutOrStdout()
	path, text, cfg, err := a.configuration(c)
	if err != nil {
		return err
	}
	records := attach.Records{Dir: filepath.Join(cfg.DataDir, "attach")}
	if r, err := records.Load(name); err != nil {
		return err
	} else if r != nil {
		return a.attached(out, r)
	}
	agent, err := attach.Home{Dir: home, Getenv: os.Getenv}.Agent(name, a.provider, a.settings)
	if err != nil {
		return usageError{err}
	}
	listen, err := freeport.Loopback()
	if err != nil {
		return err
	}
	base := agent.Base
	if a.upstream != "" {
		base = a.upstream
	}
	through, upstream, err := attach.Through(base, listen)
	if err != nil {
		return usageError{err}
	}
	source := name + "-api"
	record := &attach.Record{Agent: name, Listen: listen}
	tap, err := attach.Setting{Path: path, Syntax: attach.List, Keys: []string{"sources"}}.Plan(attach.TapSource(source, listen, upstream, agent.Routes), text)
	if err != nil {
		return err
	}
	record.Changes = append(record.Changes, tap)
	if next, err := types().Parse(path, tap.After(), os.LookupEnv); err != nil {
		return fmt.Errorf("with the tap the configuration is not valid: %w", err)
	} else if !slices.ContainsFunc(next.Sources, func(s config.Source) bool { return s.Name == source }) {
		return fmt.Errorf("%s: the tap cannot be added: add this item to its sources yourself: - %s", path, tap.Value)
	}
	if agent.Setting != nil {
		change, err := agent.Setting.Plan(through, nil)
		if err != nil {
			return err
		}
		record.Changes = append(record.Changes, change)
	}
	for _, change := range record.Changes {
		before := change.Before
		if change.New {
			before = nil
		}
		fmt.Fprintf(out, "%s\n%s\n", change.Path, difference(before, change.After()))
	}
	if agent.Setting != nil {
		fmt.Fprintf(out, "%s then needs the tap: it has no provider while neither earshot up nor earshot run is running.\n", agent.Title)
	}
	if agent.Note != "" {
		fmt.Fprintln(out, agent.Note)
	}
	if slices.ContainsFunc(cfg.Sources, func(s config.Source) bool { return agent.Transcripts != "" && s.Format == agent.Transcripts }) {
		fmt.Fprintf(out, "The configuration reads %s's transcripts too: a conversation is then in the store twice, so keep one of the two sources.\n", agent.Title)
	}
	if a.dry {
		return nil
	}
	if ok, err := a.confirmed(c); err != nil || !ok {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := records.Apply(record); err != nil {
		return err
	}
	if agent.Setting != nil {
		fmt.Fprintf(out, "%s is attached through %s. `earshot detach %s` undoes it.\n", agent.Title, listen, name)
	} else {
		fmt.Fprintf(out, "The tap of %s is http://%s: let its clients connect to that. `earshot detach %s` undoes it.\n", agent.Title, listen, name)
	}
	if tap.New {
		fmt.Fprintln(out, "An earshot up that is running began without a configuration: start it again.")
	}
	return nil
}

// configuration returns the configuration file, its content if it is still to be written, and its values.
func (a *attaching) configuration(c *cobra.Command) (path string, text []byte, cfg *config.Config, err error) {
	if a.file.found() {
		if cfg, err = a.file.load(false); err != nil {
			return "", nil, nil, err
		}
		return a.file.name(), nil, cfg, nil
	}
	if path, err = userConfig(); err != nil {
		return "", nil, nil, err
	}
	r, err := find(c.Context())
	if err != nil {
		return "", nil, nil, err
	}
	if text, err = configuration(r); err != nil {
		return "", nil, nil, err
	}
	cfg, err = types().Parse(path, text, os.LookupEnv)
	return path, text, cfg, err
}

// attached reports on an agent that is attached already.
func (a *attaching) attached(out io.Writer, r *attach.Record) error {
	for _, change := range r.Changes {
		in, err := change.Holds()
		if err != nil {
			return err
		}
		if !in {
			return fmt.Errorf("%s is attached, but %s no longer has the change: `earshot detach %s` first", r.Agent, change.Path, r.Agent)
		}
	}
	fmt.Fprintf(out, "%s is attached already, through %s.\n", r.Agent, r.Listen)
	return nil
}

// confirmed asks the person.
func (a *attaching) confirmed(c *cobra.Command) (bool, error) {
	if a.yes {
		return true, nil
	}
	in, ok := c.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return false, usageError{errors.New("nothing was changed: --yes applies this without a terminal")}
	}
	fmt.Fprint(c.OutOrStdout(), "Apply? [y/N] ")
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	line = strings.ToLower(strings.TrimSpace(line))
	if line == "y" || line == "yes" {
		return true, nil
	}
	fmt.Fprintln(c.OutOrStdout(), "Nothing was changed.")
	return false, nil
}

func (a *attaching) detach(c *cobra.Command, names []string) error {
	cfg, err := a.file.load(true)
	if err != nil {
		return err
	}
	records := attach.Records{Dir: filepath.Join(cfg.DataDir, "attach")}
	all, err := records.List()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if names = all; len(all) == 0 {
			fmt.Fprintln(c.OutOrStdout(), "No agent is attached.")
		}
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return usageError{fmt.Errorf("%s is not attached in %s", name, cfg.DataDir)}
		}
		r, err := records.Load(name)
		if err != nil {
			return err
		}
		// The agent lets go of the tap before the tap ends.
		for _, change := range slices.Backward(r.Changes) {
			how, err := change.Undo()
			if err != nil {
				return err
			}
			switch how {
			case attach.Restored:
				fmt.Fprintf(c.OutOrStdout(), "%s is as it was before.\n", change.Path)
			case attach.TakenOut:
				fmt.Fprintf(c.OutOrStdout(), "%s was changed since; our change is taken out.\n", change.Path)
			case attach.Absent:
				fmt.Fprintf(c.OutOrStdout(), "%s no longer has our change; it stays as it is.\n", change.Path)
			}
		}
		if err := records.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// difference shows the lines that differ, with two before and after them.
func difference(before, after []byte) string {
	a, b := bytes.SplitAfter(before, []byte("\n")), bytes.SplitAfter(after, []byte("\n"))
	head := 0
	for head < min(len(a), len(b)) && bytes.Equal(a[head], b[head]) {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && bytes.Equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	var out strings.Builder
	show := func(mark string, lines [][]byte) {
		for _, l := range lines {
			if len(l) > 0 {
				fmt.Fprintf(&out, "%s %s\n", mark, bytes.TrimRight(l, "\r\n"))
			}
		}
	}
	show(" ", a[max(0, head-2):head])
	show("-", a[head:len(a)-tail])
	show("+", b[head:len(b)-tail])
	show(" ", a[len(a)-tail:min(len(a), len(a)-tail+2)])
	return out.String()
}
