package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/inspect"
)

func newTop() *cobra.Command {
	var file configFile
	var output string
	var limit int
	var every time.Duration
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch streams, rates and lag, and running, waiting and stuck work",
		Long: `Show the traffic and the rate of each source, the lag of the exporters, and the open
work: running, waiting for a person, or stuck, without spans that only wait for a span
below them. Work is stuck when its verdict is neither healthy nor
a wait: the verdict and its evidence are beside it (see docs/verdicts.md).

On a terminal it is drawn again every second until q or Ctrl-C; elsewhere, and with
-o json, it is one snapshot.`,
		Example: `  earshot top
  earshot top -o json | jq '.stuck[] | {name, silent_ms}'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 || every < 100*time.Millisecond {
				return usageError{fmt.Errorf("--limit must be positive, --every 100ms or more")}
			}
			return read(c, &file, func(ctx context.Context, r *reader) error {
				look := func(before *inspect.Top) (*inspect.Top, error) {
					t, err := inspect.LoadTop(ctx, r, before, limit, now(c))
					if err == nil {
						t.Sidecar = askSidecar(ctx, app.MetricsAddress(r.cfg))
					}
					return t, err
				}
				width, color := terminal(c.OutOrStdout())
				if output == "text" && width > 0 {
					return watch(ctx, c.OutOrStdout(), every, inspect.Style{Color: color, Zone: now(c).Location()}, look)
				}
				t, err := look(nil)
				if err != nil {
					return err
				}
				return writeDrawn(c, output, t, inspect.Style{Zone: now(c).Location()})
			})
		},
	}
	file.add(c)
	outputFlag(c, &output)
	c.Flags().IntVarP(&limit, "limit", "n", 15, "at most `N` steps in each state")
	c.Flags().DurationVar(&every, "every", time.Second, "`DURATION` between two looks")
	return c
}

// watch draws again and again until q is pressed or ctx ends.
func watch(ctx context.Context, w io.Writer, every time.Duration, st inspect.Style, look func(before *inspect.Top) (*inspect.Top, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if in := int(os.Stdin.Fd()); term.IsTerminal(in) {
		if old, err := term.MakeRaw(in); err == nil {
			defer func() { _ = term.Restore(in, old) }()
			go quit(cancel) // ends with the process: a read of a terminal cannot be called off
		}
	}
	out := rawOutput(w)
	fmt.Fprint(out, "\x1b[?1049h\x1b[?25l\x1b[?7l") // another screen, no cursor, long lines are cut
	defer fmt.Fprint(out, "\x1b[?7h\x1b[?25h\x1b[?1049l")
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last *inspect.Top
	for {
		t, err := look(last)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		last = t
		st.Width, _ = terminal(w)
		var b bytes.Buffer
		if err := t.Write(&screen{w: &b}, st); err != nil {
			return err
		}
		fmt.Fprint(out, "\x1b[H", screenful(b.String(), height(w)))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// screenful is the text as a raw terminal of that height shows it, from its first line on: stuck work is above the rest.
func screenful(text string, height int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	last := "q quits"
	if n := len(lines) - max(height-1, 1); height > 0 && n > 0 {
		lines, last = lines[:len(lines)-n], fmt.Sprintf("q quits · %s below", count(n, "more line"))
	}
	// A raw terminal does not return the carriage by itself.
	return strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\r\n" + last + "\x1b[K\x1b[J"
}

func quit(cancel func()) {
	var key [1]byte
	for {
		if _, err := os.Stdin.Read(key[:]); err != nil || key[0] == 'q' || key[0] == 3 {
			cancel()
			return
		}
	}
}

// askSidecar reads the state of the sidecar whose metrics are there; nil when none is.
func askSidecar(ctx context.Context, addr string) *inspect.Sidecar {
	families := scrape(ctx, addr)
	if families == nil {
		return nil
	}
	s := &inspect.Sidecar{LagBy: make(map[string]float64)}
	each(families["earshot_streams"], func(_ string, v float64) { s.Streams += v })
	each(families["earshot_in_flight_bytes"], func(_ string, v float64) { s.InFlight += v })
	each(families["earshot_export_records_total"], func(_ string, v float64) { s.Delivered += v })
	each(families["earshot_export_lag_seconds"], func(exporter string, v float64) { s.LagBy[exporter] = v })
	return s
}

// scrape reads the metrics of the sidecar that listens there; nil when none does.
func scrape(ctx context.Context, addr string) map[string]*dto.MetricFamily {
	if addr == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return nil
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(res.Body, 8<<20))
	if err != nil || res.StatusCode != http.StatusOK || families["earshot_in_flight_bytes"] == nil {
		return nil
	}
	return families
}

// each calls f with the first label and the value of each metric of a family.
func each(f *dto.MetricFamily, call func(label string, v float64)) {
	for _, m := range f.GetMetric() {
		label := ""
		if l := m.GetLabel(); len(l) > 0 {
			label = l[0].GetValue()
		}
		call(label, m.GetGauge().GetValue()+m.GetCounter().GetValue())
	}
}
