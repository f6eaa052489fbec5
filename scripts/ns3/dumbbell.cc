// The dumbbell of `cargo bench -p fairpath-sim` in ns-3: bulk NewReno flows over one bottleneck of
// 40 Mbit/s and 20 ms with a drop-tail queue of 100 ms, each over an access link of 1 Gbit/s of its own.
//
// Prints one line: packets delivered, wall time, goodput and Jain's index.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

constexpr uint32_t kFlows = 30;
constexpr uint32_t kSegment = 1448;
constexpr uint32_t kPacket = 1500;
// 100 ms at 40 Mbit/s in packets of 1500 bytes.
constexpr const char* kQueue = "333p";

NetDeviceContainer Connect(Ptr<Node> a, Ptr<Node> b, const char* rate, const char* delay, const char* queue) {
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
    return link.Install(a, b);
}

}  // namespace

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 100.0;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kSegment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));

    NodeContainer routers, senders, receivers;
    routers.Create(2);
    senders.Create(kFlows);
    receivers.Create(kFlows);
    InternetStackHelper stack;
    stack.InstallAll();

    std::vector<NetDeviceContainer> links;
    links.push_back(Connect(routers.Get(0), routers.Get(1), "40Mbps", "20ms", kQueue));
    for (uint32_t i = 0; i < kFlows; i++) {
        links.push_back(Connect(senders.Get(i), routers.Get(0), "1Gbps", "0ms", "1000p"));
        links.push_back(Connect(routers.Get(1), receivers.Get(i), "1Gbps", "0ms", "1000p"));
    }
    // Addresses without a traffic-control layer: the queue is the device's.
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    std::vector<Ipv4InterfaceContainer> interfaces;
    for (auto& link : links) {
        interfaces.push_back(addresses.Assign(link));
        addresses.NewNetwork();
    }
    TrafficControlHelper control;
    for (auto& link : links) {
        control.Uninstall(link);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    ApplicationContainer sinks;
    for (uint32_t i = 0; i < kFlows; i++) {
        const Address target = InetSocketAddress(interfaces[2 + 2 * i].GetAddress(1), 5000);
        sinks.Add(PacketSinkHelper("ns3::TcpSocketFactory", target).Install(receivers.Get(i)));
        auto source = BulkSendHelper("ns3::TcpSocketFactory", target).Install(senders.Get(i));
        source.Start(MilliSeconds(100.0 * i / kFlows));
    }

    Simulator::Stop(Seconds(seconds));
    const auto begun = std::chrono::steady_clock::now();
    Simulator::Run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;

    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < sinks.GetN(); i++) {
        const double bytes = static_cast<double>(DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx());
        sum += bytes;
        squares += bytes * bytes;
    }
    Simulator::Destroy();
    const double packets = sum / kSegment;
    std::printf("%-34s %9.0f packets  %6.0f ns each  %5.2f M/s  %7.1f Mbit/s  Jain %.2f\n", "dumbbell, access links, ns-3",
                packets, took.count() * 1e9 / packets, packets / took.count() / 1e6,
                packets * kPacket * 8 / seconds / 1e6, sum * sum / (kFlows * squares));
    return 0;
}
