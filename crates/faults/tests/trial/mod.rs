//! The trial with ffmpeg in virtual time: pictures over two links, of which one goes bad, and how many of them are whole.

use std::time::{Duration, Instant};

use fairpath_core::Bitrate;
use fairpath_faults::{Impair, Wire, World};
use fairpath_quic_core::EngineConfig;
use fairpath_quic_core::flows::{Config, FlowId, Playout, Status};

pub(crate) const DEADLINE: Duration = Duration::from_millis(300);

/// Packets of MPEG-TS.
pub(crate) const LENGTH: usize = 1_316;

/// From when to when the first link has a tenth of its rate and loses 30 %.
pub(crate) const BAD: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(25)];
pub(crate) const SECONDS: u64 = 40;

/// Pictures in a second, of which the first begins anew.
pub(crate) const RATE: u64 = 25;

/// How often the player looks.
pub(crate) const LOOK: Duration = Duration::from_millis(2);

/// How many packets a picture takes: 2.6 Mbit/s with what MPEG-TS adds, of which the first of a second has a sixth.
pub(crate) fn packets_of(picture: u64) -> u64 {
    if picture.is_multiple_of(RATE) { 42 } else { 8 + u64::from(!picture.is_multiple_of(3)) }
}

/// The two links of the trial.
pub(crate) fn links() -> [Wire; 2] {
    [(5, 20), (4, 35)].map(|(mbps, delay_ms)| {
        let queue = Bitrate::from_mbps(mbps) * Duration::from_millis(250);
        Wire { loss: 0.002, queue, ..Wire::new(mbps, delay_ms) }
    })
}

/// A packet of the application.
pub(crate) struct Queued {
    after: Duration,
    at: Instant,
    picture: u64,
    came: bool,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    /// The share of pictures that were decoded exactly: before, while and after the first link was bad.
    whole: [f64; 3],
    /// Packets that did not come in time, of those of the first second in which it was bad.
    lost_in_the_turn: usize,
    /// The same of all.
    lost: usize,
    sender: Status,
}

pub(crate) fn phase(at: Duration) -> usize {
    BAD.iter().filter(|end| at >= **end).count()
}

pub(crate) fn turn(world: &mut World, is_bad: bool) {
    let Wire { rate, loss, .. } = links()[0];
    let (rate, loss) = if is_bad { (Bitrate::from_bps(rate.as_bps() / 10), 0.3) } else { (rate, loss) };
    world.set_rate_back(0, rate);
    world.set_impair(0, Impair { loss, ..Impair::default() });
}

/// Sends the pictures, and counts those that came whole.
pub(crate) fn send(engine: &EngineConfig, seed: u64) -> Outcome {
    let mut world = World::new(&links(), engine, seed).opened();
    let config = Config { deadline: DEADLINE, playout: Playout::Steady, ..Config::default() };
    let begun = world.now;
    for end in [&mut world.client, &mut world.server] {
        end.connection().expect("it is there").begin_flows(config, begun);
    }
    let (mut queued, mut pictures, mut is_bad) = (Vec::<Queued>::new(), 0, false);
    while world.now - begun < Duration::from_secs(SECONDS + 1) {
        let (now, after) = (world.now, world.now - begun);
        if is_bad != (phase(after) == 1) {
            is_bad = !is_bad;
            turn(&mut world, is_bad);
        }
        while pictures < SECONDS * RATE && after >= Duration::from_secs(pictures) / RATE as u32 {
            for _ in 0..packets_of(pictures) {
                let mut packet = vec![0; LENGTH];
                packet[..8].copy_from_slice(&(queued.len() as u64).to_be_bytes());
                queued.push(Queued { after, at: now, picture: pictures, came: false });
                let server = world.server.connection().expect("it is there");
                server.send_packet(FlowId(0), &packet, false, now).expect("there is room");
            }
            pictures += 1;
        }
        let client = world.client.connection().expect("it is there");
        while let Some(delivered) = client.take_packet(now) {
            let number = u64::from_be_bytes(delivered.packet[..8].try_into().expect("8 bytes")) as usize;
            queued[number].came = now - queued[number].at <= DEADLINE + 2 * LOOK;
        }
        world.run_for(LOOK);
    }
    assert_eq!(world.violation(), None);
    let (sender, _) = world.server.connection().expect("it is there").flows().expect("begun");
    judge(&queued, pictures, sender)
}

/// A packet that is missing spoils its picture and all that follow until the next that begins anew.
pub(crate) fn judge(queued: &[Queued], pictures: u64, sender: Status) -> Outcome {
    let lost: Vec<&Queued> = queued.iter().filter(|one| !one.came).collect();
    let mut spoilt = vec![false; pictures as usize];
    for one in &lost {
        let next = one.picture - one.picture % RATE + RATE;
        (one.picture..next).for_each(|picture| spoilt[picture as usize] = true);
    }
    let of = |which: usize| {
        let in_phase = |picture: &usize| phase(Duration::from_secs(*picture as u64) / RATE as u32) == which;
        let all: Vec<usize> = (0..spoilt.len()).filter(in_phase).collect();
        all.iter().filter(|picture| !spoilt[**picture]).count() as f64 / all.len() as f64
    };
    let in_the_turn = lost.iter().filter(|one| one.after >= BAD[0] && one.after < BAD[0] + Duration::from_secs(1));
    Outcome { whole: [0, 1, 2].map(of), lost_in_the_turn: in_the_turn.count(), lost: lost.len(), sender }
}

/// The share of pictures that were whole while a link was bad, and how many packets of its first
/// second did not come in time; means over the seeds.
pub(crate) fn while_bad(congestion: &str, seeds: u64) -> (f64, f64) {
    let engine = EngineConfig { congestion: congestion.into(), ..EngineConfig::live() };
    let [mut whole, mut in_the_turn] = [0.0; 2];
    for seed in 1..=seeds {
        let Outcome { whole: shares, lost_in_the_turn, lost, sender } = send(&engine, seed);
        let Status { dropped, again, .. } = sender;
        println!(
            "{congestion}, seed {seed}: {shares:.3?} whole, {lost} lost, {lost_in_the_turn} of them in the turn, \
             {dropped} not sent, {again} again"
        );
        whole += shares[1] / seeds as f64;
        in_the_turn += lost_in_the_turn as f64 / seeds as f64;
    }
    println!("{congestion}: {whole:.3} whole while a link was bad, {in_the_turn:.2} packets lost in the turn");
    (whole, in_the_turn)
}
