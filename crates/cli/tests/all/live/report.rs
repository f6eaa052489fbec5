//! The results of all runs: a table, and a picture over time.

use plotters::prelude::*;

use super::BAD;
use super::picture::{EXACT_DB, RATE, SECONDS, Shown, psnr};

/// The result of a run.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) shown: Vec<Shown>,
}

impl Row {
    fn between(&self, from: f64, to: f64) -> &[Shown] {
        let at = |seconds: f64| ((seconds * RATE) as usize).min(self.shown.len());
        &self.shown[at(from)..at(to)]
    }

    /// The share of pictures that were decoded exactly as they were sent.
    pub(crate) fn whole(&self, from: f64, to: f64) -> f64 {
        let shown = self.between(from, to);
        shown.iter().filter(|one| one.whole).count() as f64 / shown.len().max(1) as f64
    }

    fn quality(&self, from: f64, to: f64) -> (f64, f64) {
        let shown = self.between(from, to);
        let mean = |of: fn(&Shown) -> f64| shown.iter().map(of).sum::<f64>() / shown.len().max(1) as f64;
        (psnr(mean(|one| one.error)), mean(|one| one.ssim))
    }

    /// The longest time in which nothing new is shown, in seconds.
    fn freeze(&self) -> f64 {
        let frozen = self.shown.split(|one| one.there).map(<[Shown]>::len).max().unwrap_or(0);
        frozen as f64 / RATE
    }

    fn cells(&self) -> Vec<String> {
        let end = SECONDS as f64;
        let share = |from, to| format!("{:.1} %", 100.0 * self.whole(from, to));
        let (psnr, ssim) = self.quality(0.0, end);
        let (psnr_bad, ssim_bad) = self.quality(BAD.0, BAD.1);
        vec![
            self.name.to_owned(),
            share(0.0, end),
            share(0.0, BAD.0),
            share(BAD.0, BAD.1),
            share(BAD.1, end),
            format!("{psnr:.1} dB"),
            format!("{ssim:.4}"),
            format!("{psnr_bad:.1} dB"),
            format!("{ssim_bad:.4}"),
            format!("{:.2} s", self.freeze()),
        ]
    }

    pub(crate) fn line(&self) -> String {
        format!("| {} |", self.cells().join(" | "))
    }
}

/// All of them, as the documents have it.
pub(crate) fn table(rows: &[Row]) -> String {
    let head = "| | whole | before | while bad | after | PSNR | SSIM | PSNR while bad | SSIM while bad | longest freeze |\n\
                |---|---|---|---|---|---|---|---|---|---|\n";
    head.to_owned() + &rows.iter().map(|row| row.line() + "\n").collect::<String>()
}

/// The quality of the picture over time, one strip for each run.
pub(crate) fn draw(rows: &[Row]) -> String {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (900, 110 * rows.len() as u32 + 30)).into_drawing_area();
        root.fill(&WHITE).unwrap();
        let (strips, foot) = root.split_vertically(110 * rows.len() as u32);
        for (row, area) in rows.iter().zip(strips.split_evenly((rows.len(), 1))) {
            strip(row, &area);
        }
        let words = "PSNR in dB over seconds, the worst picture of each fifth of a second; grey: link A is bad";
        foot.draw(&Text::new(words, (60, 4), ("sans-serif", 15))).unwrap();
        root.present().unwrap();
    }
    svg
}

fn strip(row: &Row, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) {
    let end = SECONDS as f64;
    let caption = format!("{}: {:.1} % of pictures whole", row.name, 100.0 * row.whole(0.0, end));
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 16))
        .margin(4)
        .margin_right(16)
        .x_label_area_size(18)
        .y_label_area_size(50)
        .build_cartesian_2d(0f64..end, 0f64..EXACT_DB)
        .unwrap();
    let bad = Rectangle::new([(BAD.0, 0.0), (BAD.1, EXACT_DB)], RGBColor(0xe4, 0xe4, 0xe4).filled());
    chart.draw_series([bad]).unwrap();
    chart.configure_mesh().disable_mesh().y_labels(4).x_labels(9).label_style(("sans-serif", 12)).draw().unwrap();
    let bins = row.shown.chunks((RATE / 5.0) as usize).enumerate();
    let worst = |shown: &[Shown]| shown.iter().map(|one| psnr(one.error)).fold(EXACT_DB, f64::min);
    let line = bins.map(|(bin, shown)| ((bin as f64 + 0.5) / 5.0, worst(shown)));
    chart.draw_series(LineSeries::new(line, RGBColor(0x1f, 0x6f, 0xb4).stroke_width(2))).unwrap();
}
