"""What the rules cite."""

from __future__ import annotations

SOURCES: dict[str, str] = {
    "Arabzadeh et al. 2022": "Arabzadeh, Vtyurina, Yan and Clarke. Shallow pooling for sparse labels."
    " Information Retrieval Journal 25, 2022.",
    "Asadi and Lin 2013": "Asadi and Lin. Effectiveness/efficiency tradeoffs for candidate generation in multi-stage"
    " retrieval architectures. SIGIR 2013.",
    "Buckley and Voorhees 2000": "Buckley and Voorhees. Evaluating evaluation measure stability. SIGIR 2000.",
    "Buckley and Voorhees 2004": "Buckley and Voorhees. Retrieval evaluation with incomplete information. SIGIR 2004.",
    "Buckley and Voorhees 2005": "Buckley and Voorhees. Retrieval system evaluation. In: TREC: Experiment and"
    " Evaluation in Information Retrieval, chapter 3. MIT Press, 2005.",
    "Burges et al. 2005": "Burges, Shaked, Renshaw, Lazier, Deeds, Hamilton and Hullender. Learning to rank using"
    " gradient descent. ICML 2005.",
    "Büttcher et al. 2007": "Büttcher, Clarke, Yeung and Soboroff. Reliable information retrieval evaluation with"
    " incomplete and biased judgements. SIGIR 2007.",
    "Cabanac et al. 2010": "Cabanac, Hubert, Boughanem and Chrisment. Tie-breaking bias: effect of an uncontrolled"
    " parameter on information retrieval evaluation. CLEF 2010.",
    "Carterette et al. 2008": "Carterette, Bennett, Chickering and Dumais. Here or there: preference judgments for"
    " relevance. ECIR 2008.",
    "Chapelle et al. 2009": "Chapelle, Metzler, Zhang and Grinspan. Expected reciprocal rank for graded relevance."
    " CIKM 2009.",
    "Chapelle et al. 2011": "Chapelle, Ji, Liao, Velipasaoglu, Lai and Wu. Intent-based diversification of web search"
    " results: metrics and algorithms. Information Retrieval 14, 2011.",
    "Clarke et al. 2008": "Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon. Novelty and diversity in"
    " information retrieval evaluation. SIGIR 2008.",
    "Clarke, Craswell and Voorhees 2012": "Clarke, Craswell and Voorhees. Overview of the TREC 2012 web track."
    " TREC 2012.",
    "Clarke, Vtyurina and Smucker 2021": "Clarke, Vtyurina and Smucker. Assessing top-k preferences."
    " ACM Transactions on Information Systems 39(3), 2021.",
    "Cleverdon, Mills and Keen 1966": "Cleverdon, Mills and Keen. Factors determining the performance of indexing"
    " systems. Aslib Cranfield Research Project, 1966.",
    "Cormack and Grossman 2014": "Cormack and Grossman. Evaluation of machine-learning protocols for"
    " technology-assisted review in electronic discovery. SIGIR 2014.",
    "Craswell et al. 2020": "Craswell, Mitra, Yilmaz, Campos and Voorhees. Overview of the TREC 2019 deep learning"
    " track. arXiv:2003.07820, 2020.",
    "Craswell et al. 2021": "Craswell, Mitra, Yilmaz, Campos and Lin. MS MARCO: benchmarking ranking models in the"
    " large-data regime. SIGIR 2021.",
    "Cremonesi, Koren and Turrin 2010": "Cremonesi, Koren and Turrin. Performance of recommender algorithms on top-n"
    " recommendation tasks. RecSys 2010.",
    "Ferrante, Ferro and Fuhr 2021": "Ferrante, Ferro and Fuhr. Towards meaningful statements in IR evaluation: mapping"
    " evaluation measures to interval scales. IEEE Access 9, 2021.",
    "Fuhr 2017": "Fuhr. Some common mistakes in IR evaluation, and how they can be avoided. SIGIR Forum 51(3), 2017.",
    "Järvelin and Kekäläinen 2002": "Järvelin and Kekäläinen. Cumulated gain-based evaluation of IR techniques."
    " ACM Transactions on Information Systems 20(4), 2002.",
    "Karpukhin et al. 2020": "Karpukhin, Oguz, Min, Lewis, Wu, Edunov, Chen and Yih. Dense passage retrieval for"
    " open-domain question answering. EMNLP 2020.",
    "Krichene and Rendle 2020": "Krichene and Rendle. On sampled metrics for item recommendation. KDD 2020.",
    "Liu et al. 2024": "Liu, Lin, Hewitt, Paranjape, Bevilacqua, Petroni and Liang. Lost in the middle: how language"
    " models use long contexts. Transactions of the ACL 12, 2024.",
    "Lu, Moffat and Culpepper 2016": "Lu, Moffat and Culpepper. The effect of pooling and evaluation depth on IR"
    " metrics. Information Retrieval Journal 19(4), 2016.",
    "Mackie, Dalton and Yates 2021": "Mackie, Dalton and Yates. How deep is your learning: the DL-HARD annotated deep"
    " learning dataset. SIGIR 2021.",
    "Manning, Raghavan and Schütze 2008": "Manning, Raghavan and Schütze. Introduction to Information Retrieval,"
    " chapter 8. Cambridge University Press, 2008.",
    "McSherry and Najork 2008": "McSherry and Najork. Computing information retrieval performance measures efficiently"
    " in the presence of tied scores. ECIR 2008.",
    "Moffat 2022": "Moffat. Batch evaluation metrics in information retrieval: measures, scales, and meaning."
    " IEEE Access 10, 2022.",
    "Moffat and Zobel 2008": "Moffat and Zobel. Rank-biased precision for measurement of retrieval effectiveness."
    " ACM Transactions on Information Systems 27(1), 2008.",
    "Robertson 2006": "Robertson. On GMAP: and other transformations. CIKM 2006.",
    "Sakai 2007": "Sakai. Alternatives to bpref. SIGIR 2007.",
    "Sakai 2008": "Sakai. Comparing metrics across TREC and NTCIR: the robustness to system bias. CIKM 2008.",
    "Sakai 2020": "Sakai. On Fuhr's guideline for IR evaluation. SIGIR Forum 54(1), 2020.",
    "Salemi and Zamani 2024": "Salemi and Zamani. Evaluating retrieval quality in retrieval-augmented generation."
    " SIGIR 2024.",
    "Sormunen 2002": "Sormunen. Liberal relevance criteria of TREC: counting on negligible documents? SIGIR 2002.",
    "Thakur et al. 2021": "Thakur, Reimers, Rücklé, Srivastava and Gurevych. BEIR: a heterogeneous benchmark for"
    " zero-shot evaluation of information retrieval models. NeurIPS Datasets and Benchmarks 2021.",
    "Valcarce et al. 2018": "Valcarce, Bellogín, Parapar and Castells. On the robustness and discriminative power of"
    " information retrieval metrics for top-N recommendation. RecSys 2018.",
    "van Rijsbergen 1979": "van Rijsbergen. Information Retrieval, 2nd edition. Butterworths, 1979.",
    "Voorhees 1999": "Voorhees. The TREC-8 question answering track report. TREC-8, 1999.",
    "Voorhees 2000": "Voorhees. Variations in relevance judgments and the measurement of retrieval effectiveness."
    " Information Processing and Management 36(5), 2000.",
    "Voorhees 2004": "Voorhees. Overview of the TREC 2004 robust retrieval track. TREC 2004.",
    "Voorhees, Soboroff and Lin 2022": "Voorhees, Soboroff and Lin. Can old TREC collections reliably evaluate modern"
    " neural retrieval models? arXiv:2201.11086, 2022.",
    "Yilmaz and Aslam 2006": "Yilmaz and Aslam. Estimating average precision with incomplete and imperfect judgments."
    " CIKM 2006.",
    "Zhai, Cohen and Lafferty 2003": "Zhai, Cohen and Lafferty. Beyond independent relevance: methods and evaluation"
    " metrics for subtopic retrieval. SIGIR 2003.",
    "Zobel 1998": "Zobel. How reliable are the results of large-scale information retrieval experiments? SIGIR 1998.",
}
