package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/wrap"
)

func newWrap() *cobra.Command {
	var file configFile
	var format, record string
	c := &cobra.Command{
		Use:   "wrap -- COMMAND [ARGUMENT ...]",
		Short: "Run an MCP server or an agent for its client, and record their messages",
		Long: `Run a program that speaks JSON-RPC over its standard streams, an MCP server, an ACP
agent or codex app-server, for the client that would run it: put earshot wrap -- in front of
the command in the client's configuration. Bytes, signals and the exit status pass unchanged,
and nothing is printed.

Both directions are recorded in the folder wrap of the data directory, without the secrets
that the redaction of the configuration finds. earshot up reads that folder; in a configuration it is a
source of type file. Recordings older than a week, and the oldest beyond 1 GiB of a
format, are removed. If nothing can be recorded, the program runs all the same.`,
		Example: `  earshot wrap -- npx -y @modelcontextprotocol/server-filesystem .
  earshot wrap --format acp -- opencode acp`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "" && !slices.Contains(wrap.Formats, format) {
				return usageError{fmt.Errorf("--format %s: not one of %s", format, strings.Join(wrap.Formats, ", "))}
			}
			r := wrap.NewRecorder(func() (wrap.Settings, error) {
				cfg, err := file.load(true)
				if err != nil { // it is not the program's concern, and secrets must not be recorded
					cfg = withoutFile()
				}
				clean, err := app.Redactor(cfg)
				return wrap.Settings{Dir: filepath.Join(cfg.DataDir, wrap.Folder), File: record, Format: format, Program: args[0], Redact: clean}, err
			})
			state, err := wrap.Command{Args: args, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Tap: r.Tap}.Run()
			r.Close()
			if err != nil {
				return notStarted{err}
			}
			wrap.Exit(state)
			return nil
		},
	}
	c.Flags().SetInterspersed(false)
	file.add(c)
	c.Flags().StringVar(&format, "format", "", "`FORMAT` of the messages: "+strings.Join(wrap.Formats, ", ")+" (default: known by the first ones)")
	c.Flags().StringVar(&record, "record", "", "record to `FILE`, which is appended to and never removed")
	return c
}

// notStarted is an error of starting a program, with the exit code of shells.
type notStarted struct{ error }

func (n notStarted) Unwrap() error { return n.error }

func (n notStarted) code() int {
	if errors.Is(n, exec.ErrNotFound) || errors.Is(n, fs.ErrNotExist) {
		return 127
	}
	return 126
}
