package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// kept is a figure that a mode leaves in the work directory, for the page of goals.
type kept struct {
	Value float64 `json:"value"` // the median
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	// Busy says that other work took too much of the machine for the figure to mean much.
	Busy bool `json:"busy,omitempty"`
	// Version is that of the Earshot that was measured.
	Version string `json:"version"`
}

func (e *env) keptFile() string { return filepath.Join(e.work, "figures.json") }

// recall returns what the modes have kept, by name.
func (e *env) recall() (map[string]kept, error) {
	out := make(map[string]kept)
	b, err := os.ReadFile(e.keptFile())
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("figures: %w", err)
	}
	return out, nil
}

// publish prints a page and, where a file was named for it, writes it and keeps its
// figures: those of a short look are not for the page of goals.
func (e *env) publish(o options, page string, figures map[string]kept) error {
	fmt.Print(page)
	if o.report == "" {
		return nil
	}
	if err := e.keep(figures); err != nil {
		return err
	}
	return os.WriteFile(o.report, []byte(page), 0o644)
}

// keep adds figures to those that were kept.
func (e *env) keep(figures map[string]kept) error {
	all, err := e.recall()
	if err != nil {
		return err
	}
	version := e.version()
	for name, k := range figures {
		k.Version = version
		all[name] = k
	}
	b, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(e.keptFile(), append(b, '\n'), 0o644)
}

// spread is a figure of several measurements.
func spread(values []float64) kept {
	mid, least, most := middle(values)
	return kept{Value: mid, Least: least, Most: most}
}
