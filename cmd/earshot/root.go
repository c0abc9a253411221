package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/discover"
	"github.com/earshot-dev/earshot/plugins"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "earshot",
		Short: "Observe AI agents: traces, tables and dashboards from their traffic",
		Long: `Earshot runs beside an AI agent deployment without changing it. Decoder plugins turn
the traffic (jsonl files, SSE, WebSocket) into one message model; Earshot emits
OpenTelemetry spans for delegations and tool calls, and writes ClickHouse tables with
dashboards over them.`,
		Example: `  earshot up                            # the agents of this machine
  earshot demo                          # see it work
  earshot run -c earshot.yaml           # the sidecar
  earshot show 0801e1da                 # one conversation, turn by turn`,
		PersistentPreRun: func(c *cobra.Command, _ []string) {
			c.Root().SetOut(&screen{w: c.OutOrStdout()})
		},
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if strings.HasPrefix(err.Error(), "unknown ") {
			err = fmt.Errorf("%w: `%s --help` lists those that there are", err, c.CommandPath())
		}
		return usageError{plainly(err)}
	})
	root.AddCommand(newUp(), newDiscover(), newInit(), newAttach(), newDetach(), newService(), newRun(), newValidate(), newDemo(), newDecode(), newQuery(), newSessions(), newShow(), newExport(), newSlow(), newChanges(), newDiff(), newWho(), newExplain(), newTop(), newTail(), newPlugin(),
		newRecord(), newReplay(), newWrap(), newSchema(), newStore(), newUI(), newMCP(), newDLQ(), newErase(), newBackfill(), newDoctor(), newPlan(), newVersion(), newMan())
	root.SetVersionTemplate(versionLine() + "\n")
	root.PersistentFlags().Bool("utc", false, "print times in UTC instead of the local zone")
	root.InitDefaultCompletionCmd()
	strict(root)
	return root
}

// now is the time, in the zone in which the command prints times.
func now(c *cobra.Command) time.Time {
	if utc, err := c.Flags().GetBool("utc"); err == nil && utc {
		return time.Now().UTC()
	}
	return time.Now()
}

// parsing is the part of an error in which strconv names itself.
var parsing = regexp.MustCompile(`strconv\.\w+: parsing "[^"]*": `)

// plainly is an error of a flag without the name of the function that found it.
func plainly(err error) error {
	if text := parsing.ReplaceAllString(err.Error(), ""); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// strict has wrong arguments reported as errors of usage.
func strict(c *cobra.Command) {
	c.SuggestionsMinimumDistance = 2 // cobra's default, which SuggestionsFor does not set
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				// cobra.NoArgs takes the argument for a command.
				if !c.HasSubCommands() && strings.HasPrefix(err.Error(), "unknown command") {
					err = fmt.Errorf("%s takes no argument, got %q", c.CommandPath(), args[0])
				} else if strings.Contains(err.Error(), " arg(s), ") {
					err = fmt.Errorf("want `%s`, got %s", c.UseLine(), count(len(args), "argument"))
				}
				return usageError{err}
			}
			return nil
		}
	}
	if c.HasSubCommands() && !c.Runnable() {
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			text := fmt.Sprintf("unknown command %q for %q", args[0], c.CommandPath())
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				text += ": did you mean " + strings.Join(near, " or ") + "?"
			} else {
				text += fmt.Sprintf(": `%s --help` lists those that there are", c.CommandPath())
			}
			return usageError{errors.New(text)}
		}
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// decoders are the bundled ones.
func decoders() app.Decoders {
	d := app.Decoders{Args: func(name string) []string { return []string{decoderCommand, name} }, Cell: []string{cellCommand}}
	for name := range plugins.Bundled() {
		d.Names = append(d.Names, name)
	}
	slices.Sort(d.Names)
	return d
}

// decoderCommand makes this executable a decoder process.
const decoderCommand = "decoder"

// cellCommand makes this executable a decoder in a sandbox.
const cellCommand = "plugin-cell"

// configFile is the flag -c.
type configFile struct{ path string }

func (f *configFile) add(c *cobra.Command) {
	c.Flags().StringVarP(&f.path, "config", "c", "", "configuration `FILE` (default: $EARSHOT_CONFIG, earshot.yaml, the one of earshot init)")
}

// name is that of the file.
func (f *configFile) name() string {
	if name := cmp.Or(f.path, os.Getenv("EARSHOT_CONFIG")); name != "" {
		return name
	}
	const here = "earshot.yaml"
	if _, err := os.Stat(here); err != nil {
		if user, err := userConfig(); err == nil {
			if _, err := os.Stat(user); err == nil {
				return user
			}
		}
	}
	return here
}

// found reports whether a configuration is named, or is where one is looked for.
func (f *configFile) found() bool {
	if f.path != "" || os.Getenv("EARSHOT_CONFIG") != "" {
		return true
	}
	_, err := os.Stat(f.name())
	return err == nil
}

// withoutFile is the default configuration. Its data are the user's, which earshot up keeps, unless the
// working directory has some.
func withoutFile() *config.Config {
	c := config.Default()
	if _, err := os.Stat(c.DataDir); err != nil {
		if dir, err := userData(); err == nil {
			c.DataDir = dir
		}
	}
	return c
}

// load reads the configuration. Without a file, named or found, it returns the
// default if optional is set: commands that only read need no sources.
func (f *configFile) load(optional bool) (*config.Config, error) {
	path := f.name()
	if !f.found() {
		if optional {
			return withoutFile(), nil
		}
		return nil, usageError{errors.New("no configuration: name one with -c FILE, or let `earshot init` write one; `earshot up` needs none")}
	}
	c, err := types().Load(path, os.LookupEnv)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// loadSources reads the configuration, whose sources the command needs. Without a file they are those of earshot up,
// where it has run, of the agents that have a conversation; none where no agent has one.
func (f *configFile) loadSources(ctx context.Context) (*config.Config, error) {
	if f.found() {
		return f.load(false)
	}
	dir, err := userData()
	if err != nil || !exists(dir) {
		return f.load(false)
	}
	r, err := find(ctx)
	if err != nil {
		return nil, err
	}
	r.Agents = slices.DeleteFunc(r.Agents, func(a discover.Agent) bool { return a.Files == 0 })
	if len(r.Agents) == 0 {
		c := config.Default()
		c.DataDir = dir
		return c, nil
	}
	return upConfig(r)
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// logger returns the logger of the configuration.
func logger(c *config.Config, w io.Writer) *slog.Logger {
	var level slog.Level
	if level.UnmarshalText([]byte(c.Log.Level)) != nil {
		level = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: level}
	if c.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
