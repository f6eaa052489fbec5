//! A ticket as a QR code in a terminal.

use anyhow::Context as _;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

/// The code, in lines of half blocks. Light cells are drawn, which is right on a dark terminal;
/// on a light one most cameras read the negative, too.
pub(crate) fn drawn(ticket: &str) -> anyhow::Result<String> {
    // It is read from a screen: what is lost to dirt and folds on paper need not be made up for.
    let code =
        QrCode::with_error_correction_level(ticket, EcLevel::L).context("the ticket is too long for a QR code")?;
    let mut renderer = code.render::<Dense1x2>();
    Ok(renderer.dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).quiet_zone(true).build() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the cell is dark, in a drawing with a margin of four cells around it.
    fn is_dark(drawing: &str, x: usize, y: usize) -> bool {
        let line = drawing.lines().nth((y + 4) / 2).unwrap();
        let is_light = match line.chars().nth(x + 4).unwrap() {
            '█' => true,
            '▀' => y.is_multiple_of(2),
            '▄' => !y.is_multiple_of(2),
            _ => false,
        };
        !is_light
    }

    #[test]
    fn a_code_has_its_three_eyes_and_a_light_margin() {
        let drawing = drawn("fp1-a-ticket-of-some-length-that-is-drawn").unwrap();
        let width = drawing.lines().next().unwrap().chars().count();
        assert!(drawing.lines().all(|line| line.chars().count() == width));
        assert!(drawing.lines().next().unwrap().chars().all(|one| one == '█'), "the margin");
        let cells = width - 8;
        for (left, top) in [(0, 0), (cells - 7, 0), (0, cells - 7)] {
            // The eye has seven cells: a dark ring, a light ring, and three dark cells within.
            let row: Vec<bool> = (0..7).map(|x| is_dark(&drawing, left + x, top + 3)).collect();
            assert_eq!(row, [true, false, true, true, true, false, true], "at {left}, {top}");
        }
    }

    #[test]
    fn a_ticket_that_is_too_long_is_told() {
        assert!(drawn(&"x".repeat(3_000)).unwrap_err().to_string().contains("too long"));
    }
}
