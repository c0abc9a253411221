package main

import (
	"context"
	"slices"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/inspect"
)

// misfits returns a sentence for each source whose decoder recognizes next to nothing,
// judged by the stored rows.
func misfits(ctx context.Context, cfg *config.Config, stored []inspect.Fit) []string {
	var out []string
	var surveys []app.FileReport
	for _, f := range stored {
		fit := app.FormatMatch{Messages: int(f.Messages), Unknown: int(f.Unknown)}
		now := slices.ContainsFunc(cfg.Sources, func(s config.Source) bool { return s.Name == f.Source && s.Format == f.Format })
		if !fit.Mismatch() || !now && len(cfg.Sources) > 0 { // of a source that is no more, or has another format by now
			continue
		}
		if surveys == nil {
			// Without one there is no better format to name.
			surveys, _ = app.ReportFiles(ctx, decoders(), cfg, true, nil)
		}
		better := ""
		for i := range surveys {
			if surveys[i].Source == f.Source {
				better = surveys[i].Better
			}
		}
		out = append(out, fit.Warning(f.Source, f.Format, better))
	}
	return out
}

// nothingToShow explains an empty result: sources without files, and sources whose
// configured format is wrong.
func nothingToShow(ctx context.Context, cfg *config.Config, q inspect.Querier) ([]string, error) {
	fits, err := inspect.Fits(ctx, q)
	if err != nil {
		return nil, err
	}
	out := misfits(ctx, cfg, fits)
	surveys, err := app.ReportFiles(ctx, decoders(), cfg, false, nil)
	if err != nil {
		return nil, err
	}
	for i := range surveys {
		out = append(out, surveys[i].Warnings()...)
	}
	return out, nil
}
