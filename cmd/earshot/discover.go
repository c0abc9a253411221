package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/discover"
	"github.com/earshot-dev/earshot/core/inspect"
)

func newDiscover() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "discover",
		Short: "List the agents of this machine",
		Long: `List the traces of agents on this machine: the folders in which they keep transcripts, the
recordings of earshot wrap, servers on an agent server's usual port, and providers' base URLs in the environment.
Nothing is connected to, and no transcript is opened.`,
		Example: `  earshot discover
  earshot discover -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := find(c.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				return writeJSON(c.OutOrStdout(), r)
			}
			return writeFound(c.OutOrStdout(), r, now(c), true)
		},
	}
	outputFlag(c, &output)
	return c
}

func newInit() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a configuration for the agents of this machine",
		Long: `Write a commented configuration that follows the agents that earshot discover finds.
Without FILE it is the user's, which earshot up and every command without -c read
when there is no earshot.yaml in the working directory. FILE - is standard output.`,
		Example: `  earshot init
  earshot init -`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := find(c.Context())
			if err != nil {
				return err
			}
			text, err := configuration(r)
			if err != nil {
				return err
			}
			path, err := userConfig()
			if len(args) == 1 {
				path, err = args[0], nil
			}
			if err != nil {
				return err
			}
			if path == "-" {
				_, err := c.OutOrStdout().Write(text)
				return err
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
			if force {
				mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
			}
			f, err := os.OpenFile(path, mode, 0o600)
			if errors.Is(err, os.ErrExist) {
				return usageError{fmt.Errorf("%s exists: --force overwrites it", path)}
			}
			if err != nil {
				return err
			}
			_, err = f.Write(text)
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), path)
			return nil
		},
	}
	c.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return c
}

// find looks at this machine.
func find(ctx context.Context) (*discover.Report, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("agents are looked for below the home directory, and %w: set it, or name a configuration with -c", err)
	}
	data, err := userData()
	if err != nil {
		return nil, err
	}
	return discover.Machine{Home: home, Data: data, Getenv: os.Getenv, Proc: "/proc"}.Find(ctx)
}

// writeFound prints the report, one line for each agent. Without all, those that have no conversation so far are
// one line together.
func writeFound(w io.Writer, r *discover.Report, now time.Time, all bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var none []string
	for _, a := range r.Agents {
		if a.Files == 0 {
			if none = append(none, a.Name); all {
				fmt.Fprintf(t, "%s\tno conversation yet\t%s\n", a.Name, folders(a.Paths))
			}
			continue
		}
		what := count(a.Conversations, "conversation")
		if a.Type == "sqlite" {
			what = count(a.Files, "database")
		}
		if a.Projects > 0 {
			what += " in " + count(a.Projects, "project")
		}
		fmt.Fprintf(t, "%s\t%s, %s, the latest %s ago\t%s\n", a.Name, what, byteSize(a.Bytes), inspect.Span(now.Sub(a.Newest)), folders(a.Paths))
	}
	for _, s := range r.Servers {
		fmt.Fprintf(t, "%s\tsomething listens on its usual port\t%s\n", s.Name, s.Address)
	}
	for _, e := range r.Endpoints {
		fmt.Fprintf(t, "%s\ta provider's base URL\t%s\n", e.Variable, e.URL)
	}
	if err := t.Flush(); err != nil || all || len(none) == 0 {
		return err
	}
	first := "Followed too, without a conversation yet"
	if len(none) == len(r.Agents) {
		first = "No agent of this machine has a conversation yet; followed from their first one on"
	}
	_, err := fmt.Fprintf(w, "%s: %s\n", first, strings.Join(none, ", "))
	return err
}

// folders are the beginnings of globs, below the home directory as ~.
func folders(globs []string) string {
	home, _ := os.UserHomeDir()
	var out []string
	for _, g := range globs {
		dir := g[:strings.IndexAny(g+"*", "*{")]
		if dir != g && !os.IsPathSeparator(dir[len(dir)-1]) { // the pattern begins within a name
			dir = filepath.Dir(dir)
		}
		dir = filepath.Clean(dir)
		if rest, ok := strings.CutPrefix(dir, home+string(filepath.Separator)); ok && home != "" {
			dir = filepath.Join("~", rest)
		}
		if !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return strings.Join(out, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// configuration is a configuration that follows the agents of a report.
func configuration(r *discover.Report) ([]byte, error) {
	dir, err := userData()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Written by earshot init. config.example.yaml of Earshot's source describes every key.\n\n# Checkpoint, journal and the embedded store.\ndata_dir: %q\n\nsources:\n", dir)
	for _, a := range r.Agents {
		switch {
		case a.Files > 0 && a.Type == "sqlite":
			fmt.Fprintf(&b, "  # %s: %s when this was written.\n", a.Name, count(a.Files, "database"))
		case a.Files > 0:
			fmt.Fprintf(&b, "  # %s: %s when this was written.\n", a.Name, count(a.Conversations, "conversation"))
		default:
			fmt.Fprintf(&b, "  # %s: none when this was written.\n", a.Name)
		}
		name := strings.ToLower(strings.ReplaceAll(a.Name, " ", "-"))
		fmt.Fprintf(&b, "  - name: %s\n    type: %s\n    format: %s\n", name, a.Type, a.Format)
		if a.Type == "file" {
			b.WriteString("    newest_first: true\n")
		}
		b.WriteString("    paths:\n")
		for _, p := range a.Paths {
			fmt.Fprintf(&b, "      - %q\n", p)
		}
	}
	for _, s := range r.Servers {
		fmt.Fprintf(&b, "  # Something listens where %s usually does. To record it, let its clients connect to the tap:\n"+
			"  # - {name: %s, type: tap, format: %s, listen: \"127.0.0.1:7801\", upstream: \"http://%s\"}\n", s.Name, s.Format, s.Format, s.Address)
	}
	for _, e := range r.Endpoints {
		fmt.Fprintf(&b, "  # %s names a provider. To record it, let the variable name the tap instead:\n"+
			"  # - {name: %s, type: tap, format: %s, listen: \"127.0.0.1:7802\", upstream: %q}\n", e.Variable, e.Format, e.Format, e.URL)
	}
	return b.Bytes(), nil
}

// userData is the directory of a person's data: $XDG_DATA_HOME/earshot, ~/.local/share/earshot, or
// the directory that the system has in its place.
func userData() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "earshot"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "earshot"), nil
	case "windows":
		if dir := os.Getenv("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "earshot"), nil
		}
	}
	return filepath.Join(home, ".local", "share", "earshot"), nil
}

// userConfig is a person's configuration.
func userConfig() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "earshot", "earshot.yaml"), nil
}
