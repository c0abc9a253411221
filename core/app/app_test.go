package app

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/earshot-dev/earshot/core/config"
)

// TestInterruptedStart: whoever interrupts a start wants it to end, and is shown no failure of what it was about.
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
