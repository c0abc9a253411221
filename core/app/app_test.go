package app

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/source/otlp"
)

// TestInterruptedStart: an interrupt of a start ends it, and is no failure of the call that it meets.
func TestInterruptedStart(t *testing.T) {
	text := fmt.Sprintf("data_dir: %q\ntelemetry: {listen: \"\"}\nsources:\n  - {name: deck, type: file, format: legion, paths: [%q]}\n", t.TempDir(), t.TempDir()+"/*.jsonl")
	c, err := config.Types{Sources: SourceTypes()}.Parse("test.yaml", []byte(text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	settings := Settings{Config: c, Decoders: Decoders{Names: []string{"legion"}, Args: func(string) []string { return []string{"/nowhere"} }}}
	settings.Exporters = func(context.Context, string) ([]Exporter, error) {
		cancel()
		return nil, ctx.Err()
	}
	if err := Run(ctx, settings); err != nil {
		t.Errorf("interrupted: %v", err)
	}
	if err := Run(t.Context(), settings); err == nil {
		t.Error("an error of a start that nobody interrupts is lost")
	}
}

// TestTakenAddresses: a source's own default has no substitute, as that of the metrics has.
func TestTakenAddresses(t *testing.T) {
	var taken []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		taken = append(taken, l.Addr().String())
	}
	c, err := config.Types{Sources: SourceTypes()}.Parse("test.yaml", []byte("data_dir: "+t.TempDir()+"\nstore: {fetch: false}\nsources:\n  - {name: o, type: otlp}\n"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	o := c.Sources[0].Section.(*otlp.Config)
	o.GRPC.Listen, o.HTTP.Listen, c.Telemetry.Listen = taken[0], taken[1], taken[0]
	text := strings.Join(Environment(t.Context(), c), "\n")
	for _, address := range taken {
		if strings.Count(text, "sources[0].") != 2 || strings.Contains(text, "telemetry.listen") || !strings.Contains(text, address) {
			t.Errorf("with %s taken: %s", address, text)
		}
	}
}
