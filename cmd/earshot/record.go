package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/replay"
)

func newRecord() *cobra.Command {
	var o recordOptions
	c := &cobra.Command{
		Use:   "record --source NAME -o FILE",
		Short: "Write the live traffic of a source to a file",
		Long: `Connect as a source of the configuration does, and write the frames to a file of
frames instead of the journal, until interrupted. Secrets are redacted by the rules of
the configuration. decode reads the file, and replay plays it.

Every stream has a file of its own: the second one of live.frames.jsonl is
live.2.frames.jsonl.`,
		Example: `  earshot record -c earshot.yaml --source agno -o agno.frames.jsonl
  earshot decode --format agno agno.frames.jsonl`,
		Args: cobra.NoArgs,
		RunE: o.run,
	}
	o.file.add(c)
	c.Flags().StringVar(&o.source, "source", "", "`NAME` of the source")
	c.Flags().StringVarP(&o.out, "output", "o", "", "`FILE` to write, named *.frames.jsonl")
	c.Flags().DurationVar(&o.idle, "until-idle", 0, "end when nothing is open and nothing has come for this `DURATION`")
	_ = c.RegisterFlagCompletionFunc("source", o.complete)
	return c
}

type recordOptions struct {
	file        configFile
	source, out string
	idle        time.Duration
}

func (o *recordOptions) run(c *cobra.Command, _ []string) error {
	if o.source == "" || o.out == "" {
		return usageError{errors.New("both --source and -o are required")}
	}
	if t, err := fixture.TransportOf(o.out); err != nil || t != fixture.Frames {
		return usageError{fmt.Errorf("-o %s: the name must end in .frames.jsonl, so that decode and replay recognize it", o.out)}
	}
	if c.Flags().Changed("until-idle") && o.idle <= 0 {
		return usageError{fmt.Errorf("--until-idle %s: must be positive", o.idle)}
	}
	cfg, err := o.file.load(false)
	if err != nil {
		return err
	}
	rec := replay.NewRecorder(func(n int, origin string) (io.WriteCloser, error) {
		path := recordingName(o.out, n)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err == nil {
			fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", path, origin)
		}
		return f, err
	})
	err = app.Record(c.Context(), decoders(), cfg, o.source, rec, o.idle, logger(cfg, c.ErrOrStderr()))
	err = errors.Join(err, rec.Close())
	files, frames, n := rec.Count()
	fmt.Fprintf(c.ErrOrStderr(), "%d frames, %s, in %d files\n", frames, byteSize(n), files)
	return err
}

// recordingName names the nth file.
func recordingName(out string, n int) string {
	if n == 0 {
		return out
	}
	const suffix = "frames.jsonl"
	dir, base := filepath.Split(out)
	return fmt.Sprintf("%s%s%d.%s", dir, strings.TrimSuffix(base, suffix), n+1, suffix)
}

func (o *recordOptions) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	cfg, err := o.file.load(true)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for i := range cfg.Sources {
		if !app.Rereadable(&cfg.Sources[i]) {
			names = append(names, cfg.Sources[i].Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
